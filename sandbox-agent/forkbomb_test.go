package main

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// R25: a command may fill the process table. The agent lives on, health answers,
// and the next call works.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"in the background": `:(){ :|:& };:`,
		"in the foreground": `:(){ :|:; };:`,
		"of sleepers":       `while :; do sleep 777 & done`,
		"of detached":       `while :; do setsid -f sleep 777; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newCgroup(t, "pids", map[string]string{"pids.max": "120"})
			a := startAgent(t, agentOptions{within: []string{enterCgroup(dir)}, shipped: true})
			a.output(t, "x=kept; cd /usr")
			// Its result is its own affair; that there is one is not.
			r := a.exec(t, client.ExecRequest{Command: command, Timeout: 2})
			if limit := int64(7000); r.DurationMS > limit {
				t.Errorf("the bomb took %d ms, want at most %d", r.DurationMS, limit)
			}
			for i := range 5 {
				began := time.Now()
				if _, err := a.client.Health(t.Context(), a.pod); err != nil {
					t.Fatalf("health: %v\n%s", err, a.log)
				}
				if d := time.Since(began); d > time.Second { // 100 ms on a machine that does nothing else
					t.Errorf("health took %v", d)
				}
				r := a.run(t, `echo $x $PWD; ls -d /`)
				if r.Stdout != "kept /usr\n/\n" || r.ExitCode != 0 {
					t.Errorf("call %d after the bomb: %+v", i, *r)
				}
			}
		})
	}
}

// In an image without bash each command takes a process of its own.
func TestForkBombOfSh(t *testing.T) {
	t.Parallel()
	dir := newCgroup(t, "pids", map[string]string{"pids.max": "120"})
	a := startAgent(t, agentOptions{within: []string{enterCgroup(dir)}, shipped: true, environ: []string{"PATH=/usr/bin:/bin", "BASH_COMPAT=4.4"}})
	a.output(t, "cd /usr")
	for range 3 { // something else may end just after the table was full
		a.run(t, `for i in $(seq 200); do sleep 777 & done`)
		r := a.run(t, `pwd; ls -d /`)
		if r.Stdout != "/usr\n/\n" {
			t.Errorf("the call after: %+v", *r)
		}
		if strings.Contains(r.Notice, "The limit of processes was reached") {
			return
		}
	}
	t.Error("no call found the table full")
}
