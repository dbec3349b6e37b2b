package components

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
)

// buildOutput reads what `go build -v` prints: it counts the packages that were
// compiled and keeps everything else, which is errors.
type buildOutput struct {
	packages atomic.Int64

	mu    sync.Mutex
	line  []byte
	other []string
}

// Write implements io.Writer.
func (o *buildOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = append(o.line, p...)
	for {
		line, rest, found := bytes.Cut(o.line, []byte("\n"))
		if !found {
			return len(p), nil
		}
		o.add(string(line))
		o.line = rest
	}
}

// add takes one line. Import paths have no spaces; errors and "go: downloading"
// have.
func (o *buildOutput) add(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
	case line != "" && !strings.ContainsAny(line, " \t"):
		o.packages.Add(1)
	default:
		o.other = append(o.other, line)
	}
}

// rest is what was printed besides packages.
func (o *buildOutput) rest() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.add(string(o.line))
		o.line = nil
	}
	return strings.Join(o.other, "\n") + "\n"
}
