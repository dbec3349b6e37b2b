package main

import (
	"strings"
	"testing"
)

// The kernel's kill is named in the result of the command that it befell, and in
// no other.
func TestOutOfMemoryKillIsNamed(t *testing.T) {
	t.Parallel()
	const limit = "64 MiB"
	dir := newCgroup(t, "memory", map[string]string{"memory.limit_in_bytes": "67108864"})
	a := startAgent(t, agentOptions{within: []string{enterCgroup(dir)}, shipped: true})
	a.output(t, "x=kept")
	for name, c := range map[string]struct {
		command string
		code    int
		begins  string
	}{
		"one process":           {`tail /dev/zero`, 137, "OOMKilled: a process was killed because the memory limit of " + limit + " was reached."},
		"one of several":        {`tail /dev/zero; echo "then $?"`, 0, "OOMKilled: a process was"},
		"two, one by one":       {`tail /dev/zero; tail /dev/zero; true`, 0, "OOMKilled: 2 processes were"},
		"the shell itself":      {`x=a; while :; do x=$x$x; done`, 137, "OOMKilled: a process was"},
		"in the background":     {`tail /dev/zero & wait $!`, 137, "OOMKilled: a process was"},
		"just a lot of output":  {`head -c 200000000 /dev/zero | tail -c 1 >/dev/null`, 0, ""},
		"killed by someone":     {`sh -c 'kill -9 $$'`, 137, ""},
		"a file larger than it": {`head -c 100000000 /dev/zero > file; rm file`, 0, ""},
	} {
		r := a.run(t, c.command)
		if r.ExitCode != c.code || !strings.HasPrefix(r.Notice, c.begins) || c.begins == "" && r.Notice != "" {
			t.Errorf("%s: want exit code %d and a notice %q..., got %d, %q", name, c.code, c.begins, r.ExitCode, r.Notice)
		}
		if r := a.run(t, `echo $x`); r.Stdout != "kept\n" || r.Notice != "" {
			t.Errorf("after %s: %+v", name, *r)
		}
	}
}
