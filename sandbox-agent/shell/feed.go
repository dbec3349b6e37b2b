package shell

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// feed writes data into the pipe at path, after dropping the byte that is in
// it, until the reader is gone or the returned function is called.
func feed(path, data string) (stop func(), err error) {
	drain, err := openPipe(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(drain)
	write, err := openPipe(path, unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(write), "input")
	var first [1]byte
	if _, err := unix.Read(drain, first[:]); err != nil {
		w.Close()
		return nil, fmt.Errorf("prepare standard input: %w", err)
	}
	go func() {
		defer w.Close()
		_, err := io.WriteString(w, data)
		_ = err // a command need not read its input
	}()
	return func() { w.Close() }, nil
}
