package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/spool"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Descriptors of the resident shell. It is born with fdWake and the three
// after it; starter moves them up by ten. loop.bash names the moved ones.
const (
	fdWake    = 200 // a line: evaluate what fdText holds
	fdText    = 201 // memory file: NUL-separated words, or the loop
	fdRecords = 202 // records for the agent
	fdSpare   = 203 // a line: the spare goes on
	fds       = 204 // how many descriptors a shell is born with

	fdStdout = 204 // the next command's pipes, made by the shell itself
	fdStderr = 205
	fdStdin  = 206
)

// life is one lineage of resident shells: a bash and the spares that went on
// in its place. Its fields belong to whoever runs a command or settles it.
type life struct {
	wake, spareWake *os.File
	control         *os.File // records come out of it,
	fence           *os.File // and go in: the agent's own mark where they end
	text            *os.File
	records         chan record
	done            chan struct{} // closed with the life

	main   *process.Child
	spare  process.Pin   // forked before the command that runs or comes next
	mark   int           // the last pid that was given out before that command
	killed []process.Pin // spares that may not be gone yet
	depth  int           // how many spares have gone on
	// The pids of the spare that was asked for the state last, and of the one
	// that was counted as a change of it.
	asked, counted int
	out            *streams // the next command's, once settled
}

// begin starts a bash in dir, which first evaluates restore. It does not wait for
// it to be ready.
func begin(r *process.Reaper, path, dir string, environ []string, restore string) (*life, error) {
	l := &life{records: make(chan record, 16), done: make(chan struct{})}
	wake, err1 := pipe(&l.wake, false)
	spareWake, err2 := pipe(&l.spareWake, false)
	records, err3 := pipe(&l.control, true)
	text, err4 := spool.Memory("command", []byte(loop+"\x00"+restore))
	null, err5 := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	l.text = text
	defer closeAll(wake, spareWake, records, null)
	err := errors.Join(err1, err2, err3, err4, err5)
	if err == nil {
		var fence int
		fence, err = openPipe(fmt.Sprintf("/proc/self/fd/%d", records.Fd()), unix.O_WRONLY)
		l.fence = os.NewFile(uintptr(fence), "records")
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("start the shell: %w", err)
	}

	files := make([]uintptr, fds)
	for i := range files {
		files[i] = ^uintptr(0) // closed
	}
	files[0], files[1], files[2] = null.Fd(), null.Fd(), null.Fd()
	files[fdWake], files[fdText] = wake.Fd(), text.Fd()
	files[fdRecords], files[fdSpare] = records.Fd(), spareWake.Fd()
	argv := []string{"bash", "--norc", "--noprofile", "-c", starter, "bash"}
	l.main, err1 = spawn(r, path, argv, dir, environ, files)
	if err1 != nil {
		l.close()
		return nil, err1
	}
	go l.readRecords()
	return l, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// spawn starts a program in dir, or in / when dir can't be entered, in a
// session of its own, first in line for the kernel's OOM killer and last for the
// processor.
func spawn(r *process.Reaper, path string, argv []string, dir string, environ []string, files []uintptr) (*process.Child, error) {
	attr := &syscall.ProcAttr{Dir: dir, Env: environ, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}}
	child, err := r.Start(path, argv, attr)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		attr.Dir = "/"
		child, err = r.Start(path, argv, attr)
	}
	if err != nil {
		return nil, err
	}
	// Both fail only for a child that is gone already.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", child.PID), []byte("1000"), 0)
	_ = r.StandBack(child)
	return child, nil
}

// pipePath names a descriptor of the shell that waits for a command.
func (l *life) pipePath(fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", l.main.PID, fd) }

// open opens the pipes that the shell made for the next command. A
// here-string's newline is the first byte in each.
func (l *life) open() error {
	stdout, err := openCapture(l.pipePath(fdStdout), wire.FrameStdout, 1)
	if err != nil {
		return err
	}
	stderr, err := openCapture(l.pipePath(fdStderr), wire.FrameStderr, 1)
	if err != nil {
		stdout.discard()
		return err
	}
	l.out = newStreams(stdout, stderr)
	return nil
}

// send hands words to the shell and wakes it: the path of standard input, the
// text to evaluate, and what that text refers to.
func (l *life) send(words []string) error {
	if err := l.setText(strings.Join(words, "\x00")); err != nil {
		return err
	}
	_, err := l.wake.Write([]byte("\n"))
	return err
}

func (l *life) setText(s string) error {
	// Cut only afterwards: an emptied file gives its memory back and asks for it anew.
	if _, err := l.text.WriteAt([]byte(s), 0); err != nil {
		return err
	}
	if err := l.text.Truncate(int64(len(s))); err != nil {
		return err
	}
	_, err := l.text.Seek(0, io.SeekStart)
	return err
}

// retire ends a spare that is no longer needed.
func (l *life) retire(spare process.Pin) {
	if err := spare.Kill(); err != nil {
		spare.Release() // not ours to signal: a pid that something forged
		return
	}
	const few = 4
	if l.killed = append(l.killed, spare); len(l.killed) > few {
		l.alone(0)
	}
}

// alone waits until no retired spare is left: all spares read the same pipe,
// and even one that is being killed may take what is meant for another.
func (l *life) alone(patience time.Duration) bool {
	l.killed = slices.DeleteFunc(l.killed, func(p process.Pin) bool {
		ended := p.Ended(patience)
		if ended {
			p.Release()
		}
		return ended
	})
	return len(l.killed) == 0
}

func (l *life) dropPipes() {
	l.out.discard()
	l.out = nil
}

// close lets go of the shell and its spare: both end when they see it. It is
// called once.
func (l *life) close() {
	close(l.done)
	closeAll(l.wake, l.spareWake, l.control, l.fence, l.text)
	l.spare.Release()
	for _, p := range l.killed {
		p.Release()
	}
	l.dropPipes()
}
