package process

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"time"
)

// TestKillOfAFamily: what lost its parents is known by its mark, and others are
// left alone.
func TestKillOfAFamily(t *testing.T) {
	start := func(mark, script string) (*exec.Cmd, io.Reader) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = append(cmd.Environ(), "FAMILY_TEST="+mark)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out
	}
	const orphan = "(setsid sh -c 'echo on; exec sleep 1000' &) ; "
	family, out := start(t.Name(), orphan+"exec sleep 1000")
	other, otherOut := start(t.Name()+"-other", "echo on; exec sleep 1000")
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	for _, r := range []io.Reader{out, otherOut} {
		if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- family.Wait() }() // else it stays, as a zombie that still has its number
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := (Family{Leader: family.Process.Pid, Mark: "FAMILY_TEST=" + t.Name()}).Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("want the leader killed")
	}
	if h, err := Open(other.Process.Pid); err != nil || !h.Alive() {
		t.Errorf("want a process of another mark left alone: %v", err)
	}
	all, err := Scan()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range (Family{Mark: "FAMILY_TEST=" + t.Name()}).members(all) {
		if !p.Zombie() {
			t.Errorf("%+v of the family lives", p)
		}
	}
}
