package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestNeutral(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "ls -la /tmp": "ls", "./run.sh --x=1": "./run.sh", "git log HEAD@1": "git", "python3 a.py": "python3", "echo a=b": "echo",
		"": "", " ls": "", "ls ": "", "ls\n": "", "ls\ncd x": "", "a=1": "", "a=1 ls": "", "cd /": "", "exit": "", ". x": "", "set -e": "",
		"ls; cd /": "", "ls && cd /": "", "ls | x": "", "ls > f": "", "ls $x": "", "ls ${x:=1}": "", "ls `cd /`": "", "ls 'a'": "", `ls \`: "",
		"ls *": "", "ls ~": "", "ls {a,b}": "", "ls #x": "", "f() x": "", "! true": "", "time ls": "", "kill 1": "", "printf -v x y": "", "ls &": "",
		"read x": "", "ls  a": "", "ls\ta": "", "unset x": "", "wait": "", "type ls": "", "pwd -P": "", "[ a ]": "", "((x=1))": "",
	} {
		if got := neutral(text); got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
	if !slices.IsSorted(stateful) {
		t.Error("stateful is not sorted")
	}
}

// TestStatefulIsComplete holds the list against the bash that is here.
func TestStatefulIsComplete(t *testing.T) {
	words, err := exec.Command("bash", "-c", "compgen -bk").Output()
	if err != nil {
		t.Fatal("the tests need bash: ", err)
	}
	pure := []string{"true", "false", "echo", "test"}
	for _, word := range strings.Fields(string(words)) {
		if neutral(word) != "" && !slices.Contains(pure, word) {
			t.Errorf("%q may change the shell's state", word)
		}
	}
}
