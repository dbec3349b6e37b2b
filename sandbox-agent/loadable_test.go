package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// loadable is a builtin for bash's enable -f, by the ABI of its builtins.h, that
// sets a variable.
const loadable = `
struct builtin { char *name; int (*function)(void *); int flags; char *const *long_doc; const char *short_doc; char *handle; };
extern void *bind_variable(const char *, const char *, int);
static int probe(void *words) { bind_variable("y", "loaded", 0); return 0; }
static char *doc[] = { (char *)0 };
struct builtin probe_struct = { "probe", probe, 1, doc, "probe", 0 };
`

// TestLoadedBuiltinIsNoMereProgram: its name looks like a program's, but what it
// does to the shell is kept when a later command is killed.
func TestLoadedBuiltinIsNoMereProgram(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	source := filepath.Join(a.workspace, "probe.c")
	if err := os.WriteFile(source, []byte(loadable), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(a.workspace, "probe.so"), source).CombinedOutput(); err != nil {
		t.Fatalf("the test needs a C compiler, as the race detector does: %v: %s", err, out)
	}
	a.output(t, `enable -f ./probe.so probe`)
	a.output(t, `probe`)
	a.exec(t, client.ExecRequest{Command: `sleep 9`, Timeout: 0.1})
	if got := a.output(t, `echo $y`); got != "loaded\n" {
		t.Errorf("y is %q", got)
	}
}
