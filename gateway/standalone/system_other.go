//go:build !linux

package standalone

import (
	"errors"
	"os"
	"syscall"
)

func supported() error {
	return errors.New("--standalone needs Linux, whose namespaces sessions run in: use a virtual machine or a container, or a cluster")
}

func attributes() *syscall.SysProcAttr { return nil }

func lock(*os.File) bool { return false }

func mine(os.FileInfo) bool { return false }
