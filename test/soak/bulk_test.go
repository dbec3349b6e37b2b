package soak

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// moreWhileBusy is how much memory an agent may take above idle, however much a
// command writes.
const moreWhileBusy = 32 << 20

// TestMemoryIsBoundedWhateverIsWritten: half of the bytes go to either stream.
func TestMemoryIsBoundedWhateverIsWritten(t *testing.T) {
	t.Parallel()
	write := fmt.Sprintf("head -c %[1]dM /dev/zero & head -c %[1]dM /dev/zero >&2; wait", *gigabytes*512)
	total := int64(*gigabytes) << 30
	for name, way := range map[string]func(t *testing.T, s *soaked) (*client.ExecResult, error){
		"with a log": func(t *testing.T, s *soaked) (*client.ExecResult, error) {
			return s.bulk(t, client.ExecRequest{Command: write})
		},
		"without a log": func(t *testing.T, s *soaked) (*client.ExecResult, error) {
			return s.bulk(t, client.ExecRequest{Command: write, NoLog: true})
		},
		"streamed": func(t *testing.T, s *soaked) (*client.ExecResult, error) { return s.bulkStream(t, write, 0) },
		"streamed to a slow reader": func(t *testing.T, s *soaked) (*client.ExecResult, error) {
			return s.bulkStream(t, write, time.Millisecond/2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if _, err := s.Run(t.Context(), client.ExecRequest{Command: "true"}); err != nil {
				t.Fatal(err)
			}
			idle := s.usage(t)
			s.resetPeak(t)
			stop := s.watchHealth(t, "output "+name)
			result, err := way(t, s)
			stop()
			if err != nil {
				t.Fatal(err)
			}
			peak := s.peak(t)
			t.Logf("%d GB in %d ms: %.1f MiB resident at most, %.1f MiB when idle", *gigabytes, result.DurationMS, mib(peak), mib(idle.rss))
			if peak > idle.rss+moreWhileBusy {
				t.Errorf("%.1f MiB more than idle", mib(peak-idle.rss))
			}
			if result.StdoutBytes+result.StderrBytes != total || result.ExitCode != 0 {
				t.Errorf("want %d bytes, got %d and %d, exit code %d", total, result.StdoutBytes, result.StderrBytes, result.ExitCode)
			}
			if disk := s.usage(t).disk; disk > logBytes+1<<20 {
				t.Errorf("%.1f MiB of logs, want %d at most", mib(disk), logBytes>>20)
			}
		})
	}
}

func (s *soaked) bulk(t *testing.T, r client.ExecRequest) (*client.ExecResult, error) {
	r.Timeout = client.MaxCommandTimeout
	return s.Run(t.Context(), r)
}

// bulkStream reads a stream and takes pause over each piece.
func (s *soaked) bulkStream(t *testing.T, command string, pause time.Duration) (*client.ExecResult, error) {
	r := client.ExecRequest{Command: command, Timeout: client.MaxCommandTimeout, NoLog: true}
	return s.Client.ExecStream(t.Context(), s.Pod, r, 0, func(byte, []byte) error {
		if pause > 0 {
			<-time.After(pause)
		}
		return nil
	})
}

// TestHealthWhileTheQueueIsFull: the queue takes so many and no more, and all of
// them run.
func TestHealthWhileTheQueueIsFull(t *testing.T) {
	t.Parallel()
	s := start(t)
	stop := s.watchHealth(t, "a full queue")
	var waiting sync.WaitGroup
	refused := make(chan error, wire.QueueLength+2)
	for range wire.QueueLength + 2 { // one runs, one is too many
		waiting.Go(func() {
			_, err := s.Run(t.Context(), client.ExecRequest{Command: "sleep 0.02"})
			refused <- err
		})
	}
	waiting.Wait()
	close(refused)
	stop()
	for err := range refused {
		if err != nil && !errors.Is(err, client.ErrQueueFull) {
			t.Error(err)
		}
	}
}

// TestHealthDuringAMassKill: a command that left thousands of processes is over
// within 5 s of its cancel.
func TestHealthDuringAMassKill(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.Run(t.Context(), client.ExecRequest{Command: "true"}); err != nil {
		t.Fatal(err)
	}
	r := client.ExecRequest{ID: "mass", Timeout: client.MaxCommandTimeout, Command: "for ((i = 0; i < 2000; i++)); do sleep 777 & done; echo all; wait"}
	stop := s.watchHealth(t, "a start and kill of 2,000 processes")
	var cancelled time.Time
	result, err := s.Client.ExecStream(t.Context(), s.Pod, r, 0, func(byte, []byte) error { // all are there
		cancelled = time.Now()
		return s.Client.CancelExec(t.Context(), s.Pod, r.ID)
	})
	took := time.Since(cancelled)
	stop()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("it was over %v after the cancel", took)
	if result.Stdout != "all\n" || result.ExitCode != 137 || took > 5*time.Second {
		t.Errorf("it was over %v after the cancel: %+v", took, *result)
	}
	if left := len(descendants(s.Pid)); left > 3 {
		t.Errorf("%d processes are left", left)
	}
}
