package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// shellArgument makes this program run `true` in the agent's shell package, once
// for each line of its standard input, and print how long each took.
const shellArgument = "shell-alone"

func serveShell() (err error) {
	ctx := context.Background()
	reaper, err := process.NewReaper()
	if err != nil {
		return err
	}
	defer reaper.Close()
	s := shell.New(shell.Config{Reaper: reaper, Dir: os.TempDir(), Environ: os.Environ(), RestoreLimits: func() error { return nil }})
	if s.Kind() != wire.ShellBash {
		return fmt.Errorf("this machine's shell is %q; the bench needs bash", s.Kind())
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began := time.Now()
		result, err := s.Run(ctx, shell.Command{Text: "true", Timeout: time.Minute, OutputBytes: wire.DefaultOutputBytes})
		took := time.Since(began)
		if err == nil && result.ExitCode != 0 {
			err = fmt.Errorf("true gave exit code %d", result.ExitCode)
		}
		if err != nil {
			return err
		}
		fmt.Println(took)
	}
	return nil
}
