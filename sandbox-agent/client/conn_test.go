package client

import (
	"io"
	"net"
	"sync"
	"testing"
)

// sink is a connection that takes all.
type sink struct{ net.Conn }

func (sink) Write(p []byte) (int, error) { return len(p), nil }

// dripping is a body that tells how much is asked of it, and then waits.
type dripping struct {
	asked chan int
	end   chan struct{}
}

func (d dripping) Read(p []byte) (int, error) {
	d.asked <- len(p)
	<-d.end
	return 0, io.EOF
}

// Many bodies that drip don't each hold a large piece; once they have ended, others
// get one.
func TestLargePiecesAreFew(t *testing.T) {
	d := dripping{asked: make(chan int), end: make(chan struct{})}
	var all sync.WaitGroup
	begin := func() int {
		all.Go(func() {
			c := countingConn{Conn: sink{}}
			if n, err := c.ReadFrom(d); n != 0 || err != nil {
				t.Errorf("sent %d, %v", n, err)
			}
		})
		return <-d.asked
	}
	for i := range maxLarge + 10 {
		want := largePiece
		if i >= maxLarge {
			want = smallPiece
		}
		if got := begin(); got != want {
			t.Fatalf("body %d is sent in pieces of %d bytes, want %d", i, got, want)
		}
	}
	close(d.end)
	all.Wait()
	if got := begin(); got != largePiece {
		t.Errorf("the next is sent in pieces of %d bytes, want %d", got, largePiece)
	}
	all.Wait()
}
