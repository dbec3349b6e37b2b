package main

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// R25: a command may change the limits of any process of its user, the agent's
// too. It must not wedge the session by it.
func TestAgentRestoresItsLimits(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "kept=1")
	// What follows a command's result may meet the lowered limit too, and the shell
	// then goes on as it was before that command: let it be one that changes nothing.
	a.output(t, ":")
	for _, resource := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE} {
		var was unix.Rlimit
		if err := unix.Prlimit(a.process.Pid, resource, nil, &was); err != nil {
			t.Fatal(err)
		}
		lowered := unix.Rlimit{Cur: 0, Max: was.Max}
		if err := unix.Prlimit(a.process.Pid, resource, &lowered, nil); err != nil {
			t.Fatal(err)
		}
		a.client.Close() // the next request needs a connection of its own
		if got := a.output(t, "echo $kept"); got != "1\n" {
			t.Errorf("resource %d: %q, want the shell as it was", resource, got)
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
