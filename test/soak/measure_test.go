package soak

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usage is what an agent takes.
type usage struct {
	processes   int // it and its descendants
	descriptors int // its own
	threads     int
	rss, disk   int64 // bytes; disk is the workspace's
}

func (u usage) String() string {
	return fmt.Sprintf("%d processes, %d descriptors, %d threads, %.1f MiB resident, %.1f MiB on disk",
		u.processes, u.descriptors, u.threads, mib(u.rss), mib(u.disk))
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func (s *soaked) usage(t *testing.T) (u usage) {
	t.Helper()
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid))
	if err != nil {
		t.Fatal(err)
	}
	u.descriptors = len(descriptors)
	u.processes = len(descendants(s.Pid)) + 1
	u.rss = s.status(t, "VmRSS:") << 10
	u.threads = int(s.status(t, "Threads:"))
	err = filepath.WalkDir(s.workspace, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			u.disk += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// descendants are all processes below one.
func descendants(pid int) (all []string) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may be gone
		for _, child := range strings.Fields(string(children)) {
			all = append(all, child)
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, descendants(n)...)
			}
		}
	}
	return all
}

// status is a number of /proc/PID/status.
func (s *soaked) status(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == field {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in /proc/PID/status", field)
	return 0
}

// resetPeak lets the peak of the resident memory begin anew.
func (s *soaked) resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// peak is the most that was resident since.
func (s *soaked) peak(t *testing.T) int64 {
	t.Helper()
	return s.status(t, "VmHWM:") << 10
}

// watchHealth asks for the agent's health, one call after the other, until the
// returned function is called. That one logs how long the answers took, and
// fails the test when half of them took longer than 100 ms, or one much longer.
func (s *soaked) watchHealth(t *testing.T, during string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var took []time.Duration
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			began := time.Now()
			h, err := s.Client.Health(t.Context(), s.Pod)
			if err != nil || h.Status != "ok" {
				t.Errorf("health during %s: %+v, %v", during, h, err)
				return
			}
			took = append(took, time.Since(began))
			select { // a probe, not a load
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-ended
		if len(took) == 0 {
			return
		}
		slices.Sort(took)
		n := len(took)
		t.Logf("health during %s: %d answers, p50 %v, p99 %v, longest %v", during, n, took[n/2], took[n*99/100], took[n-1])
		if took[n/2] > 100*time.Millisecond || took[n-1] > 5*time.Second {
			t.Errorf("health during %s took too long", during)
		}
	}
}
