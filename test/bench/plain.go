package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// plainArgument makes this program the peer of what moves many bytes: it sends as
// many over one connection.
const plainArgument = "plain-sender"

// chunk is what the peer writes and both sides read at a time, as agent and
// client do.
const chunk = 256 << 10

// sendPlain connects to an address and sends so many bytes.
func sendPlain(address, bytes string) error {
	n, err := strconv.Atoi(bytes)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	buffer := make([]byte, chunk)
	for range n / chunk {
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
	}
	return conn.Close()
}

// receivePlain starts a sender and times its bytes, from the connection on until
// all are written to out.
func receivePlain(ctx context.Context, bytes int64, out io.Writer) (took time.Duration, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	_, _, stop, err := startSelf(ctx, plainArgument, listener.Addr().String(), strconv.FormatInt(bytes, 10))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	conn, err := listener.Accept()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	started := time.Now()
	// Only a reader and a writer: the kernel could else move the bytes without this
	// program.
	n, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{conn}, make([]byte, chunk))
	if err == nil && n != bytes {
		err = fmt.Errorf("%d of %d bytes came", n, bytes)
	}
	return time.Since(started), err
}
