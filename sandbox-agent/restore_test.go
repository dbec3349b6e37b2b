package main

import (
	"strings"
	"testing"
)

// When a command kills the shell and its spare, the next has the working
// directory and what was exported, and the notice says what is gone.
func TestWhatIsRestoredWhenShellAndSpareAreKilled(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, `mkdir -p 'a b/c'; ln -s c 'a b/link'; cd 'a b/link'; umask 027; export one="it's" two=$'new\nline'; three=lost; f() { echo f; }; g() { echo g; }; export -f g`)
	a.output(t, `export four=4`)
	a.output(t, `sleep 0.2`) // a shell is not asked more often than that
	r := a.run(t, `export five=lost; kill -9 -1; kill -9 $BASHPID`)
	if r.ExitCode != 137 {
		t.Errorf("the command that killed them: %+v", *r)
	}
	next := a.run(t, `echo "$PWD"; umask; echo "$one|$two|$four|${three-unset}|${five-unset}"; g; type f 2>&1; set -- $(ls /proc/self/fd); echo $#`)
	// The spare may still look alive when it is to go on.
	if !strings.Contains(r.Notice+next.Notice, "working directory and exports are restored") {
		t.Errorf("notices %q, %q", r.Notice, next.Notice)
	}
	want := a.workspace + "/a b/link\n0027\nit's|new\nline|4|unset|unset\ng\nbash: line 1: type: f: not found\n4\n"
	if next.Stdout != want {
		t.Errorf("restored: want %q, got %q", want, next.Stdout)
	}
}

// What can't be restored is not tried for ever.
func TestShellThatFailsWithWhatItRemembersBeginsWithout(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, `export one=1 BASH_COMPAT=4.4; mkdir d; cd d`)
	for range 2 {
		a.run(t, `rmdir ../d; kill -9 -1; kill -9 $BASHPID`)
		if got := a.output(t, `echo on; cd ..`); got != "on\n" {
			t.Errorf("got %q", got)
		}
	}
}
