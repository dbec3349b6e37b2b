package background

import (
	"errors"
	"fmt"
	"os"

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

// newTerminal opens a pair of terminals.
func newTerminal(t wire.Terminal) (*streams, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	master := os.NewFile(uintptr(fd), "terminal")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	var slave *os.File
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = resize(master, t)
	}
	if err != nil {
		master.Close()
		slave.Close() // nil is fine
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	return &streams{in: master, out: master, childIn: slave, childOut: slave}, nil
}

func resize(master *os.File, t wire.Terminal) error {
	size := unix.Winsize{Row: uint16(t.Rows), Col: uint16(t.Cols)}
	if size.Row == 0 {
		size.Row = defaultRows
	}
	if size.Col == 0 {
		size.Col = defaultCols
	}
	raw, err := master.SyscallConn() // File.Fd would make it block
	if err != nil {
		return err
	}
	var failure error
	err = raw.Control(func(fd uintptr) { failure = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
	return errors.Join(err, failure)
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
