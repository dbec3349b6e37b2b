package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/berth-dev/berth/hack/image/catalog"
)

// progressEvery is how often a compilation says how far it is.
const progressEvery = 15 * time.Second

// compile leaves the program below Out, where `go build` finds it up to date next time.
func (b Builder) compile(ctx context.Context, binary catalog.Binary) (string, error) {
	file, err := filepath.Abs(filepath.Join(b.Out, "bin", path.Base(binary.Output)))
	if err != nil {
		return "", err
	}
	args := append([]string{"build", "-v"}, catalog.GoFlags(b.Version)...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", file, binary.Package)...)
	cmd.Dir = b.Source
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOFLAGS=", "GOWORK=off")
	cmd.Env = append(cmd.Env, catalog.GoEnv...)
	output := &goOutput{label: binary.Package, log: b.Log, last: time.Now()}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", binary.Package, err, output.errors())
	}
	return file, nil
}

// goOutput takes what `go build -v` prints, a line for each package that it compiles.
type goOutput struct {
	label string
	log   io.Writer
	last  time.Time
	said  bytes.Buffer
}

// Write implements io.Writer.
func (o *goOutput) Write(p []byte) (int, error) {
	o.said.Write(p)
	if now := time.Now(); now.Sub(o.last) >= progressEvery {
		o.last = now
		said := o.said.Bytes()
		packages := bytes.Count(said, []byte("\n")) - bytes.Count(said, []byte("go: downloading "))
		fmt.Fprintf(o.log, "Compiling %s: %d packages so far\n", o.label, packages)
	}
	return len(p), nil
}

// errors is what was printed besides packages, whose import paths have no spaces.
func (o *goOutput) errors() string {
	var lines []string
	for line := range strings.Lines(o.said.String()) {
		if strings.ContainsAny(strings.TrimSpace(line), " \t") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
