package standalone

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program is the agent's file name.
const program = "berth-agent"

// find returns the absolute path of the agent: as it was given, beside this
// program, or on PATH.
func find(given string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", fmt.Errorf("--agent=%s: %w", given, err)
		}
		return filepath.Abs(path)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return search(filepath.Dir(self))
}

// search looks in a directory, then on PATH.
func search(dir string) (string, error) {
	beside := filepath.Join(dir, program)
	if path, err := exec.LookPath(beside); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is neither at %s nor on PATH: build it (make build), or name it with --agent", program, beside)
	}
	return filepath.Abs(path)
}
