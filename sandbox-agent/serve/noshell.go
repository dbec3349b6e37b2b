package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	// exitNoShell (EX_CONFIG of sysexits.h) tells the controller that the image
	// can't be used as it is.
	exitNoShell = 78
	noShell     = "the image has neither bash nor sh: nothing can run in it"
	// terminationLog is where the kubelet reads a container's last words.
	terminationLog = "/dev/termination-log"
)

// tellNoShell leaves the reason where the controller finds it. Outside of a pod
// there is no such file, and standard error has to do.
func tellNoShell(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tell the kubelet that %s: %w", noShell, err)
	}
	_, err = fmt.Fprintf(file, "NoShell: %s\n", noShell)
	return errors.Join(err, file.Close())
}
