package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// R25: a command may change the limits of any process of its user, the agent's
// too. It must not wedge the session by it.
func TestAgentRestoresItsLimits(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	gate := filepath.Join(a.workspace, "gate")
	if err := unix.Mkfifo(gate, 0o666); err != nil {
		t.Fatal(err)
	}
	for i, resource := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE} {
		// The limit is lowered while a command runs, as a command would do it.
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.output(t, fmt.Sprintf("read -r <%s; kept=%d", gate, i))
		}()
		through, err := os.OpenFile(gate, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var was unix.Rlimit
		if err := unix.Prlimit(a.process.Pid, resource, nil, &was); err != nil {
			t.Fatal(err)
		}
		lowered := unix.Rlimit{Cur: 0, Max: was.Max}
		if err := unix.Prlimit(a.process.Pid, resource, &lowered, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := through.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		through.Close()
		<-ended
		a.client.Close() // the next request needs a connection of its own
		if got, want := a.output(t, "echo $kept"), fmt.Sprintln(i); got != want {
			t.Errorf("resource %d: %q, want the shell as it was: %q", resource, got, want)
		}
	}
}

// A limit that can't be raised again ends the agent: the container's restart is
// the only mend, and it keeps the files.
func TestAgentEndsWithoutOpenFiles(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	lowered := unix.Rlimit{Cur: 0, Max: 0}
	if err := unix.Prlimit(a.process.Pid, unix.RLIMIT_NOFILE, &lowered, nil); err != nil {
		t.Fatal(err)
	}
	a.client.Close()
	if _, err := a.client.Health(t.Context(), a.pod); err == nil {
		t.Error("the agent still answers")
	}
	var exit *exec.ExitError
	if err := <-a.exited; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).ExitStatus() != 1 {
		t.Errorf("the agent ended with %v, want exit status 1\n%s", err, a.log)
	}
}
