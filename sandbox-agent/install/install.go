// Package install copies the agent to where another image's container finds
// it: what an init container does on clusters without image volumes.
package install

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Name is the file name of the agent.
const Name = "berth-agent"

// Install copies the executable at source to dir/berth-agent, mode 0755. The
// copy appears under its name only when it is whole.
func Install(source, dir string) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("install agent: %w", err)
	}
	defer in.Close()
	out, err := os.CreateTemp(dir, "."+Name+"-*")
	if err != nil {
		return fmt.Errorf("install agent: %w", err)
	}
	defer func() {
		if err != nil {
			out.Close()
			os.Remove(out.Name())
			err = fmt.Errorf("install agent in %s: %w", dir, err)
		}
	}()
	if _, err = io.Copy(out, in); err != nil {
		return err
	}
	if err = out.Chmod(0o755); err != nil {
		return err
	}
	if err = out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), filepath.Join(dir, Name))
}
