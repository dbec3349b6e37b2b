package serve

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// pair returns both ends of a connection over TCP.
func pair(t *testing.T) (server, reader net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if reader, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); reader.Close() })
	return server, reader
}

func TestStuckReaderIsGivenUp(t *testing.T) {
	t.Parallel()
	server, _ := pair(t)
	c := newPatient(server, 50*time.Millisecond)
	n, err := c.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == 64<<20 {
		t.Errorf("want a part written and a time-out, got %d, %v", n, err)
	}
}

// A reader that takes much longer than patience, and makes progress, has it all.
func TestSlowReaderIsWaitedFor(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	server, reader := pair(t)
	if err := reader.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // more than the kernel takes
	read := make(chan []byte)
	go func() {
		var got bytes.Buffer
		tick := time.NewTicker(patience / 4)
		defer tick.Stop()
		for range 14 {
			<-tick.C
			_, _ = io.CopyN(&got, reader, 64<<10) // compared below
		}
		_, _ = io.Copy(&got, reader)
		read <- got.Bytes()
	}()
	began := time.Now()
	c := newPatient(server, patience)
	if n, err := c.Write(data); n != len(data) || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	c.Close()
	if got := <-read; !bytes.Equal(got, data) {
		t.Errorf("%d bytes came, want %d, the same", len(got), len(data))
	}
	if d := time.Since(began); d < 3*patience {
		t.Errorf("it took %v: too little to prove anything", d)
	}
}

func TestPatienceIsForWritesThatBlock(t *testing.T) {
	t.Parallel()
	server, reader := pair(t)
	c := newPatient(server, time.Nanosecond)
	if n, err := c.Write([]byte("hello")); n != 5 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	reader.Close()
	var err error
	for range 1000 { // the first one may still be taken
		if _, err = c.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if err == nil {
		t.Errorf("a reader that is gone: %v", err)
	}
	c.Close()
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: want ErrClosed, got %v", err)
	}
}

// asked is as long as a file, and knows the largest piece that was asked of it.
type asked struct{ left, largest int }

func (a *asked) Read(p []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	a.largest = max(a.largest, len(p))
	n := min(len(p), a.left)
	a.left -= n
	return n, nil
}

// Slow readers hold their pieces: beyond so many, those are small.
func TestLargePiecesAreFew(t *testing.T) {
	server, reader := pair(t)
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends with the connection
	c := newPatient(server, patience).(io.ReaderFrom)
	for held := range maxLarge + 1 {
		if held > 0 {
			large <- struct{}{}
		}
		file, want := &asked{left: 1 << 20}, largePiece
		if held == maxLarge {
			want = 32 << 10
		}
		if n, err := c.ReadFrom(file); n != 1<<20 || err != nil || file.largest != want || len(large) != held {
			t.Errorf("%d held: %d bytes, %v, pieces of %d, then %d held", held, n, err, file.largest, len(large))
		}
	}
	for range maxLarge {
		<-large
	}
}
