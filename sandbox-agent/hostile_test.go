package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// What the session's user may not learn of, or do to, the agent.
func TestAgentIsOutOfTheUsersReach(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{})
	for name, command := range map[string]string{
		"descriptors":            `ls /proc/1/fd/ 2>/dev/null | grep .`,
		"a descriptor":           `: < /proc/1/fd/0`,
		"memory":                 `head -c 1 /proc/1/mem`,
		"memory map":             `cat /proc/1/maps`,
		"environment":            `cat /proc/1/environ`,
		"root directory":         `ls /proc/1/root/`,
		"working directory":      `ls /proc/1/cwd/`,
		"stack":                  `cat /proc/1/stack`,
		"system call":            `cat /proc/1/syscall`,
		"auxiliary vector":       `cat /proc/1/auxv`,
		"ptrace":                 `timeout 5 strace -o /dev/null -p 1`,
		"signal KILL":            `kill -9 1; test ! -d /proc/1/`,
		"signal STOP":            `kill -STOP 1; test ! -d /proc/1/`,
		"OOM score":              `echo 1000 > /proc/1/oom_score_adj`,
		"cgroup":                 `echo 0 > /sys/fs/cgroup/memory/cgroup.procs`,
		"its program":            `echo x >> /mnt/agent`,
		"setuid programs":        `[ "$(setpriv -d | grep -c 'no_new_privs: 1')" = 0 ]`,
		"the agent's variables":  `env | grep BERTH_`,
		"those of other shells":  `grep -l BERTH_ /proc/[0-9]*/environ`,
		"a raw look at its keys": `grep -a BERTH_PUBLIC_KEYS /proc/1/environ`,
	} {
		if r := a.run(t, command); r.ExitCode == 0 || r.Stdout != "" {
			t.Errorf("%s: %q gave %+v", name, command, *r)
		}
	}
	if got := a.output(t, "echo alive; id -u"); got != "alive\n1000\n" {
		t.Errorf("afterwards: %q", got)
	}
}

// R25: a disk that is full fails what writes to it, not the session.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{}, "mount -t tmpfs -o size=256k,mode=777 none "+userWorkspace, "mount -t tmpfs -o size=256k,mode=1777 none /tmp")
	a.output(t, "x=kept; echo file > file")
	r := a.run(t, `cat /dev/zero > fill; cat /dev/zero > /tmp/fill; echo full`)
	if r.Stdout != "full\n" || !strings.Contains(r.Stderr, "No space left") {
		t.Errorf("filling: %+v", *r)
	}
	for command, want := range map[string]string{
		`echo $x`:                    "kept\n",
		`cat file`:                   "file\n",
		`cat <<< here`:               "here\n",
		"cat <<E\n$x\nE":             "kept\n",
		`echo more > file2`:          "",
		`echo pipe | cat`:            "pipe\n",
		`exit 3`:                     "",
		`(sleep 0; echo sub) & wait`: "sub\n",
	} {
		if r := a.run(t, command); r.Stdout != want {
			t.Errorf("%q: %+v", command, *r)
		}
	}
	r = a.exec(t, client.ExecRequest{Command: "seq 100000", MaxOutputBytes: 1000})
	if r.ExitCode != 0 || !r.Truncated || r.StdoutBytes != 588895 || !strings.HasSuffix(r.Stdout, "\n100000\n") {
		t.Errorf("a long output: %+v", *r)
	}
	if _, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "file"}); err != nil && !strings.Contains(err.Error(), "no_space") {
		t.Errorf("export: %v", err)
	}
	if got := a.output(t, "rm fill /tmp/fill; echo room > file2; cat file2; echo $x"); got != "room\nkept\n" {
		t.Errorf("with room again: %q", got)
	}
}

// A process that has become another user's is out of the agent's reach: the
// result says so, and the session goes on.
func TestProcessOfAnotherUserIsNamed(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{escalates: true}, `cp "$(command -v setpriv)" /mnt/become`, "chmod 4755 /mnt/become")
	a.output(t, "x=kept")
	r := a.exec(t, client.ExecRequest{Command: `sleep 888 & /mnt/become --reuid=0 --regid=0 --clear-groups sleep 777`, Timeout: 0.5})
	if !r.TimedOut || r.ExitCode != 137 || r.DurationMS > 5500 ||
		!strings.Contains(r.Notice, "may still run: kill process") || !strings.Contains(r.Notice, "operation not permitted") {
		t.Errorf("the command that ran out of time: %+v", *r)
	}
	if got := a.output(t, `echo $x; pgrep -xc sleep`); got != "kept\n1\n" {
		t.Errorf("afterwards: %q, want the shell and that one process", got)
	}
}

func TestCommandOfOneMiBAtOneBelowAndOneAbove(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const frame = len(`{"command":""}` + "\n")
	for size, fits := range map[int]bool{client.MaxExecBody - 1: true, client.MaxExecBody: true, client.MaxExecBody + 1: false} {
		head := "touch ran; echo ${#HOME} >/dev/null # "
		command := head + strings.Repeat("x", size-frame-len(head))
		r, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: command}, 0)
		if fits && (err != nil || r.ExitCode != 0) {
			t.Errorf("a body of %d bytes: %v, %+v", size, err, r)
		}
		if !fits && !errors.Is(err, client.ErrTooLarge) {
			t.Errorf("a body of %d bytes: want ErrTooLarge, got %v", size, err)
		}
		if got := a.run(t, "rm ran").ExitCode == 0; got != fits {
			t.Errorf("a body of %d bytes: ran is %v", size, got)
		}
	}
}
