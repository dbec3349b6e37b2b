package differential

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

var shScripts = flag.Int("sh-scripts", 20, "how many scripts for each plain sh")

// TestSessionIsAPlainSh: without a bash, working directory, umask and exported
// variables go on as in one sh, and nothing of an interrupted command does.
func TestSessionIsAPlainSh(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to hide the machine's bash from the agent")
	}
	first := firstSeed(t, "sh-scripts", *shScripts)
	for name, shell := range plainShells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := binWithSh(t, shell)
			r := Runner{Hide: bashes(), Dir: t.TempDir()}
			r.check(t, first, *shScripts, func(seed uint64) Script { return GenerateSh(seed, bin) })
		})
	}
}

// plainShells are those of this machine, by name. There is an sh at least.
func plainShells(t *testing.T) map[string]string {
	t.Helper()
	shells := map[string]string{}
	for _, name := range []string{"sh", "dash", "busybox"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			t.Fatal(err)
		}
		shells[filepath.Base(path)] = path
	}
	return shells
}

// binWithSh returns a directory in which sh is shell.
func binWithSh(t *testing.T, shell string) string {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile(shell)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sh"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// bashes are where an agent looks for one.
func bashes() []string {
	var found []string
	for _, dir := range filepath.SplitList(defaultPath) {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "bash"))
		if err == nil && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	return found
}
