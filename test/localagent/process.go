package localagent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"
)

// startTime is what an agent gets to listen.
const startTime = 20 * time.Second

// Process is a berth-agent that listens.
type Process struct {
	*os.Process
	Address netip.AddrPort
	Log     *Log
	// Exited gives how it ended, and is closed then.
	Exited <-chan error
}

// Launch starts cmd, which is an agent, and waits until it listens.
func Launch(cmd *exec.Cmd) (*Process, error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent in a PID namespace: %w", err)
	}
	listening, exited := make(chan string, 1), make(chan error, 1)
	p := &Process{Process: cmd.Process, Log: newLog(), Exited: exited}
	go func() {
		defer close(exited)
		p.Log.read(stderr, listening)
		exited <- cmd.Wait()
	}()
	select {
	case address := <-listening:
		p.Address, err = netip.ParseAddrPort(address)
	case <-time.After(startTime):
		err = fmt.Errorf("it did not listen within %v", startTime)
	case end := <-p.Exited:
		err = errors.Join(errors.New("it ended"), end)
	}
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("start the agent: %w\n%s", err, p.Log)
	}
	return p, nil
}

// Stop kills the agent, and all that runs in its PID namespace with it.
func (p *Process) Stop() {
	_ = p.Kill() // fails only when it has ended
	for range p.Exited {
	}
}

// Log keeps what an agent says.
type Log struct {
	mu    sync.Mutex
	text  []byte
	ended bool
	grown sync.Cond
}

// Await waits until the log holds text, and tells whether it does: it may have ended.
func (l *Log) Await(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !bytes.Contains(l.text, []byte(text)) && !l.ended {
		l.grown.Wait()
	}
	return bytes.Contains(l.text, []byte(text))
}

func newLog() *Log {
	l := &Log{}
	l.grown.L = &l.mu
	return l
}

// read reads a log to its end, and tells where the agent listens.
func (l *Log) read(from io.Reader, listening chan<- string) {
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadBytes('\n')
		l.mu.Lock()
		l.text = append(l.text, line...)
		l.ended = err != nil
		l.grown.Broadcast()
		l.mu.Unlock()
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "Agent listened" {
			listening <- entry.Address
		}
		if err != nil {
			return
		}
	}
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
