package background

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Size of a terminal whose size nobody says.
const (
	defaultRows = 24
	defaultCols = 80
)

// streams are both ends of what a process reads from and writes to. With a
// terminal, in and out are the same file, and so are childIn and childOut.
type streams struct {
	in, out           *os.File // non-blocking
	childIn, childOut *os.File
}

func newStreams(terminal *wire.Terminal) (*streams, error) {
	if terminal != nil {
		return newTerminal(*terminal)
	}
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		unix.Close(in[0])
		unix.Close(in[1])
		return nil, fmt.Errorf("pipe: %w", err)
	}
	s := &streams{childIn: os.NewFile(uintptr(in[0]), "input"), childOut: os.NewFile(uintptr(out[1]), "output")}
	for _, mine := range []int{in[1], out[0]} {
		if err := unix.SetNonblock(mine, true); err != nil {
			s.closeChild()
			unix.Close(in[1])
			unix.Close(out[0])
			return nil, fmt.Errorf("pipe: %w", err)
		}
	}
	s.in, s.out = os.NewFile(uintptr(in[1]), "input"), os.NewFile(uintptr(out[0]), "output")
	return s, nil
}

func newTerminal(t wire.Terminal) (*streams, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	s := &streams{in: master, out: master, childIn: slave, childOut: slave}
	if err := resize(master, t); err != nil {
		s.closeChild()
		s.close()
		return nil, err
	}
	return s, nil
}

func resize(master *os.File, t wire.Terminal) error {
	size := pty.Winsize{Rows: uint16(t.Rows), Cols: uint16(t.Cols)}
	if size.Rows == 0 {
		size.Rows = defaultRows
	}
	if size.Cols == 0 {
		size.Cols = defaultCols
	}
	if err := pty.Setsize(master, &size); err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	return nil
}

// closeChild closes the process's ends.
func (s *streams) closeChild() {
	s.childIn.Close()
	if s.childOut != s.childIn {
		s.childOut.Close()
	}
}

// close closes the agent's.
func (s *streams) close() {
	s.in.Close()
	if s.out != s.in {
		s.out.Close()
	}
}
