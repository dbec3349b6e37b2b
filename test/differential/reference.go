package differential

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Outcome is what one side made of a script.
type Outcome struct {
	Parts []Result // one for each part
	Files map[string]string
}

// Result is what one part did.
type Result struct {
	Stdout, Stderr string
	Status         int
}

// defaultPath is where either side finds programs.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// environ is the environment of either side's shell, with its home at dir.
func environ(path, dir string) []string { return []string{"PATH=" + path, "HOME=" + dir} }

// Reference runs s in one plain shell whose working directory is dir. What it
// keeps beside that goes to notes.
func Reference(ctx context.Context, s Script, dir, notes string) (Outcome, error) {
	var text strings.Builder
	for i, p := range s.Parts {
		if err := os.WriteFile(filepath.Join(notes, fmt.Sprint("in", i)), []byte(p.Stdin), 0o600); err != nil {
			return Outcome{}, err
		}
		mark(&text, notes, i, p.Before)
		text.WriteString(p.Text() + "\n")
	}
	fmt.Fprintf(&text, "echo \"$?\" >>'%s/status'; exec >/dev/null 2>&1\n", notes)
	cmd := exec.CommandContext(ctx, s.Shell[0], append(s.Shell[1:len(s.Shell):len(s.Shell)], text.String(), filepath.Base(s.Shell[0]))...)
	cmd.Dir, cmd.Env = dir, environ(s.Path, dir)
	runErr := cmd.Run()
	status, err := os.ReadFile(filepath.Join(notes, "status"))
	if err != nil {
		return Outcome{}, fmt.Errorf("reference of seed %d: %w, %w", s.Seed, err, runErr)
	}
	codes := strings.Fields(string(status))[1:] // the first is from before
	if len(codes) != len(s.Parts) {
		return Outcome{}, fmt.Errorf("reference of seed %d ended in part %d (%w):\n%s", s.Seed, len(codes), runErr, s)
	}
	var o Outcome
	for i, code := range codes {
		r, err := resultOf(notes, i)
		if err != nil {
			return o, err
		}
		if r.Status, err = strconv.Atoi(code); err != nil {
			return o, err
		}
		r.Stdout, r.Stderr = normal(r.Stdout), normal(r.Stderr)
		o.Parts = append(o.Parts, r)
	}
	o.Files, err = files(dir)
	return o, err
}

// mark writes what stands before a part: see the package comment. A function
// would be a RETURN trap's affair. An interruption shows in $? alone.
func mark(text *strings.Builder, notes string, i int, before []Interruption) {
	fmt.Fprintf(text, `{ __ref=$?; echo "$__ref" >>'%[1]s/status'; exec <'%[1]s/in%[2]d' >>'%[1]s/out%[2]d' 2>>'%[1]s/err%[2]d'; }`, notes, i)
	if n := len(before); n > 0 {
		fmt.Fprintf(text, "; __ref=%d", before[n-1].Status)
	}
	text.WriteString("; case $__ref in 0) :;; *) ( exit \"$__ref\" );; esac && :\n")
}

func resultOf(notes string, i int) (Result, error) {
	stdout, err := os.ReadFile(filepath.Join(notes, fmt.Sprint("out", i)))
	if err != nil {
		return Result{}, err
	}
	stderr, err := os.ReadFile(filepath.Join(notes, fmt.Sprint("err", i)))
	return Result{Stdout: string(stdout), Stderr: string(stderr)}, err
}
