package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// TestJobs: what a command leaves behind is listed, can be read, and is the
// shell's own otherwise.
func TestJobs(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const command = `mkfifo go; (read line < go; echo "out $line"; echo err >&2) & echo first`
	if got := a.output(t, command); got != "first\n" {
		t.Errorf("got %q", got)
	}
	a.output(t, `(sleep 1000 >/dev/null 2>&1 &)`) // writes nowhere: no job, or not for long
	list, err := a.client.Processes(t.Context(), a.pod)
	for err == nil && len(list.Processes) != 1 {
		list, err = a.client.Processes(t.Context(), a.pod)
	}
	if err != nil {
		t.Fatal(err)
	}
	job := list.Processes[0]
	if job.Kind != client.KindJob || job.Command != command || !job.Running {
		t.Errorf("got %+v", job)
	}
	_, refusedInput := a.client.ProcessInput(t.Context(), a.pod, job.ID, client.ProcessInput{Data: "x"})
	for _, err := range []error{refusedInput, a.client.SignalProcess(t.Context(), a.pod, job.ID, "KILL")} {
		if !errors.Is(err, client.ErrIsJob) || !strings.Contains(err.Error(), "in a command") {
			t.Errorf("input or signal: got %v", err)
		}
	}
	a.fifo(t, "go", true)
	got := a.until(t, job.ID, "")
	if got != "out \nerr\n" && got != "err\nout \n" {
		t.Errorf("got %q", got)
	}
	if j := a.look(t, job.ID); j.Running || j.ExitCode != nil {
		t.Errorf("got %+v", j)
	}
	if got := a.output(t, `echo second`); got != "second\n" {
		t.Errorf("a later result: %q", got)
	}
}

func TestJobsMakeRoomForProcesses(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	for range client.MaxProcesses + 2 {
		a.run(t, `sleep 1000 &`)
	}
	for range 3 {
		a.background(t, `exec sleep 1000`)
	}
	list, err := a.client.Processes(t.Context(), a.pod)
	if err != nil || len(list.Processes) != client.MaxProcesses || list.Processes[client.MaxProcesses-1].Kind != client.KindProcess {
		t.Errorf("%v: %+v", err, list)
	}
}
