package background

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/supervise"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// markName is the variable by which a process's descendants are known.
const markName = "__BERTH_PROCESS"

// terminalType is what programs are told of a terminal, unless the shell
// exports something else.
const terminalType = "TERM=xterm-256color"

// Start starts a process when its turn comes, and returns it; or the one that
// has its id and command already, with created false. Cancelling ctx before its
// turn gives ctx's error, and nothing ran. Other errors are this package's and
// those of Config.Launch.
func (r *Registry) Start(ctx context.Context, req wire.ProcessRequest) (p wire.Process, created bool, err error) {
	id := req.ID
	if id == "" {
		id = newID(wire.KindProcess)
	}
	digest := sha256.Sum256([]byte(req.Command))
	for {
		e, tried, err := r.reserve(id, digest)
		if err != nil {
			return wire.Process{}, false, err
		}
		if e != nil {
			return e.view(), false, nil
		}
		if tried == nil {
			break
		}
		select {
		case <-tried:
		case <-ctx.Done():
			return wire.Process{}, false, ctx.Err()
		}
	}
	e, err := r.start(ctx, id, req)
	r.release(id, e)
	if err != nil {
		return wire.Process{}, false, err
	}
	return e.view(), true, nil
}

// start returns nil unless the process runs.
func (r *Registry) start(ctx context.Context, id string, req wire.ProcessRequest) (e *entry, err error) {
	c := shell.Command{Text: req.Command, Cwd: req.Cwd}
	for _, v := range req.Env {
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	err = r.config.Launch(ctx, c, func(l shell.Launch) error {
		select {
		case <-r.closing:
			return ErrClosed
		default:
		}
		s, err := newStreams(req.Terminal)
		if err != nil {
			return err
		}
		mark := markName + "=" + rand.Text()
		proc, err := r.config.Supervisor.Start(program(l, mark, req.Terminal != nil), l.Dir,
			[]*os.File{s.childIn, s.childOut, s.childOut, l.Command, l.State})
		s.closeChild()
		if err != nil {
			s.close()
			return err
		}
		e = newEntry(id, wire.KindProcess, req.Command, r.config.Spools)
		e.terminal, e.mark, e.process, e.out = req.Terminal != nil, mark, proc, s.out
		e.in <- s.in
		eof := make(chan struct{})
		go e.pump(s.out, eof)
		go r.await(e, eof)
		return nil
	})
	return e, err
}

func program(l shell.Launch, mark string, terminal bool) supervise.Program {
	env := append([]string{mark}, l.Env...)
	if terminal && !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }) {
		env = append(env, terminalType)
	}
	return supervise.Program{Path: l.Path, Argv: l.Argv, Env: env, Terminal: terminal}
}

// terminalTime is how long the last output of a process may take through its
// terminal: the kernel carries it over on its own time.
const terminalTime = 100 * time.Millisecond

// await waits for the end of a process. It has ended once what it wrote can be
// read; what others still write through the same pipe comes later.
func (r *Registry) await(e *entry, eof <-chan struct{}) {
	<-e.process.Ended()
	if e.terminal {
		timer := time.NewTimer(terminalTime)
		defer timer.Stop()
		select {
		case <-eof:
		case <-timer.C:
		}
	}
	e.flush()
	code, known := e.process.ExitCode()
	if known {
		e.end(&code, false)
	} else {
		e.end(nil, true)
	}
	e.closeInput()
	r.noteEnd()
}
