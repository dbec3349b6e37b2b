package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestParseStatSurvivesProgramNames(t *testing.T) {
	t.Parallel()
	const tail = " S 17 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 31415 1000 1 18446744073709551615"
	for _, name := range []string{"etcd", "a b", ") S 1 (", "((", ""} {
		got, err := parseStat("42 (" + name + ")" + tail)
		if want := (stat{state: 'S', parent: 17, start: 31415}); err != nil || got != want {
			t.Errorf("program %q: got %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, line := range []string{"", "42", "42 (etcd)", "42 (etcd) S 17"} {
		if got, err := parseStat(line); err == nil {
			t.Errorf("%q: got %+v, want an error", line, got)
		}
	}
}

// sleeper starts a child that sleeps until the test ends.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // may have been killed by the test
		_ = cmd.Wait()         // may have been waited for
	})
	return cmd
}

func TestIdentityIsNotFooledByAReusedProcessID(t *testing.T) {
	t.Parallel()
	cmd := sleeper(t)
	now, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !now.Alive() {
		t.Errorf("%+v runs, but is said not to be alive", now)
	}
	earlier := Identity{PID: now.PID, Start: now.Start - 1}
	if earlier.Alive() {
		t.Errorf("%+v is another process, but is said to be alive", earlier)
	}
	if err := earlier.Kill(t.Context()); err != nil {
		t.Errorf("killing a process that is gone: %v", err)
	}
	if !now.Alive() {
		t.Error("the process that has the ID now was killed in place of an earlier one")
	}
}

func TestKillWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	cmd := sleeper(t)
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Nobody has waited for the child: it's a zombie now.
	if id.Alive() {
		t.Error("a zombie is said to be alive")
	}
	if err := id.Kill(t.Context()); err != nil {
		t.Errorf("killing it again: %v", err)
	}
}

func TestWhileEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	cmd := sleeper(t)
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	ended := errors.New("ended")
	ctx, stop, err := id.While(t.Context(), ended)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("the context ended before the process")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the process ended 10 seconds ago, the context didn't")
	}
}

func TestIdentityFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pid")
	if _, err := ReadIdentity(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading no file: %v, want fs.ErrNotExist", err)
	}
	want, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if want.PID != os.Getpid() || !want.Alive() {
		t.Errorf("Self() is %+v, the process is %d", want, os.Getpid())
	}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadIdentity(path); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadIdentity(path); err == nil {
		t.Errorf("a cut file gave %+v, want an error", got)
	}
}

func TestLockIsExclusiveUntilClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v, want ErrLocked", err)
	}
	waiting := make(chan struct{})
	locked := make(chan error, 1)
	go func() {
		second, err := Lock(path, func() { close(waiting) })
		if err == nil {
			err = second.Close()
		}
		locked <- err
	}()
	<-waiting
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-locked; err != nil {
		t.Errorf("the second lock after the first was given up: %v", err)
	}
}

func TestChildren(t *testing.T) {
	t.Parallel()
	cmd := sleeper(t)
	children, err := Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := children["sleep"]; !ok {
		t.Errorf("children are %v, want sleep (%d) among them", children, cmd.Process.Pid)
	}
}
