package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// TestRing: the newest 4 MiB are kept, and offsets stay what they were.
func TestRing(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const size = client.ProcessOutputBytes
	a.wait(t, a.background(t, `true`).ID)
	idle := a.memory(t)
	for name, total := range map[string]int64{"one below": size - 1, "at the limit": size, "one above": size + 1, "100 MB": 100_000_000} {
		p := a.background(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo -n end`, total-3))
		a.signal(t, p.ID, "CONT")
		if code := a.wait(t, p.ID); code != 0 {
			t.Fatalf("%s: exit code %d", name, code)
		}
		got := a.look(t, p.ID)
		if got.OutputEnd != total || got.OutputStart != max(0, total-size) || got.Notice != "" {
			t.Errorf("%s: got %+v", name, got)
		}
		o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: 0, Limit: 10})
		if err != nil || o.Offset != got.OutputStart || o.Output != "xxxxxxxxxx" {
			t.Errorf("%s: from the start: %+v, %v", name, o, err)
		}
		o, err = a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: -5})
		if err != nil || o.Offset != total-5 || o.Output != "xxend" || o.NextOffset != total || o.Running {
			t.Errorf("%s: from the end: %+v, %v", name, o, err)
		}
	}
	if grown := a.memory(t) - idle; grown > 32<<20 {
		t.Errorf("the agent's memory grew by %d bytes", grown)
	}
	if entries, err := os.ReadDir(a.workspace); err != nil || len(entries) != 0 {
		t.Errorf("the rings have names: %v, %v", entries, err)
	}
}

// wait waits for the end of a process whose output doesn't matter.
func (a *agent) wait(t testing.TB, id string) int {
	t.Helper()
	for {
		end := a.look(t, id).OutputEnd
		o, err := a.client.ProcessOutput(t.Context(), a.pod, id, client.OutputQuery{Offset: end + 1<<40, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if !o.Running {
			return *o.ExitCode
		}
	}
}

func TestLongPollWakesAtOnce(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `while read -r line; do echo "$line"; done; exit 5`)
	offset := int64(0)
	for i := range 5 {
		got := make(chan *client.ProcessOutput, 1)
		go func() {
			o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: offset, Wait: 50 * time.Second})
			if err != nil {
				t.Error(err)
			}
			got <- o
		}()
		began := time.Now()
		a.input(t, p.ID, client.ProcessInput{Data: fmt.Sprintln(i)})
		if o := <-got; o == nil || o.Output != fmt.Sprintln(i) || time.Since(began) > 5*time.Second {
			t.Fatalf("after %v: %+v", time.Since(began), o)
		}
		offset += 2
	}
	got := make(chan *client.ProcessOutput, 1)
	go func() {
		o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: offset, Wait: 50 * time.Second})
		if err != nil {
			t.Error(err)
		}
		got <- o
	}()
	a.input(t, p.ID, client.ProcessInput{EOF: true})
	if o := <-got; o == nil || o.Running || o.ExitCode == nil || *o.ExitCode != 5 {
		t.Errorf("at the end: %+v", o)
	}
	o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: offset, Wait: 50 * time.Second})
	if err != nil || o.Running {
		t.Errorf("after the end: %+v, %v", o, err)
	}
}

func TestOutputIsText(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	p := a.background(t, `printf 'a\377b\342\202'; read x; printf '\254c\342\202'`)
	if got := a.until(t, p.ID, "b"); got != "a\uFFFDb" {
		t.Errorf("before the character is whole: %q", got)
	}
	a.input(t, p.ID, client.ProcessInput{Data: "\n"})
	if got := a.until(t, p.ID, ""); got != "a\uFFFDb€c\uFFFD\uFFFD" {
		t.Errorf("got %q", got)
	}
	for limit, want := range map[int]string{1: "€", 2: "€", 3: "€", 4: "€c"} {
		o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{Offset: 3, Limit: limit})
		if err != nil || o.Output != want {
			t.Errorf("limit %d: got %+v, %v", limit, o, err)
		}
	}
}

// TestFullDiskHoldsUpNoProcess: its output is dropped, and its notice says so.
func TestFullDiskHoldsUpNoProcess(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	a := startAgent(t, agentOptions{})
	a.output(t, `mount -t tmpfs -o size=128k small .`)
	p := a.background(t, `head -c 1000000 /dev/zero | tr '\0' x; echo done; exit 3`)
	if code := a.wait(t, p.ID); code != 3 {
		t.Errorf("got exit code %d", code)
	}
	got := a.look(t, p.ID)
	if !strings.Contains(got.Notice, "dropped") || got.OutputEnd > 1_000_000 || got.OutputEnd == 0 {
		t.Errorf("got %+v", got)
	}
	o, err := a.client.ProcessOutput(t.Context(), a.pod, p.ID, client.OutputQuery{})
	if err != nil || strings.Trim(o.Output, "x") != "" {
		t.Errorf("got %.100q, %v", o.Output, err)
	}
}
