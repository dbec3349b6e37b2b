package shellcases

import (
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Bash() {
		if seen[c.Name] || c.Name == "" || len(c.Steps) == 0 {
			t.Errorf("%q is there twice, or empty", c.Name)
		}
		seen[c.Name] = true
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		step   Step
		result client.ExecResult
		want   int
	}{
		"as wanted":                 {Step{Stdout: "a", Stderr: "b", Code: 1}, client.ExecResult{Stdout: "a", Stderr: "abc", ExitCode: 1}, 0},
		"everything differs":        {Step{}, client.ExecResult{Stdout: "a", Stderr: "b", ExitCode: 1, TimedOut: true, Notice: "n"}, 5},
		"stderr is missing":         {Step{Stderr: "b"}, client.ExecResult{}, 1},
		"any code":                  {Step{Code: AnyCode}, client.ExecResult{ExitCode: 9, TimedOut: true}, 0},
		"loose":                     {Step{Loose: true}, client.ExecResult{Stdout: "a", Stderr: "b", Notice: "n"}, 0},
		"loose, but stdout is told": {Step{Loose: true, Stdout: "b"}, client.ExecResult{Stdout: "a"}, 1},
	} {
		if got := Check(c.step, &c.result); len(got) != c.want {
			t.Errorf("%s: want %d differences, got %q", name, c.want, got)
		}
	}
}
