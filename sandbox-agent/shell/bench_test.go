package shell

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// BenchmarkRunTrue is the shell alone: no HTTP, no token.
func BenchmarkRunTrue(b *testing.B) { benchmarkTrue(b, 0) }

// BenchmarkRunTruePaced leaves the shell the time to fork its spare.
func BenchmarkRunTruePaced(b *testing.B) { benchmarkTrue(b, 2*time.Millisecond) }

func benchmarkTrue(b *testing.B, pause time.Duration) {
	reaper, err := process.NewReaper()
	if err != nil {
		b.Fatal(err)
	}
	defer reaper.Close()
	s := New(Config{Reaper: reaper, Dir: b.TempDir(), Environ: os.Environ(), RestoreLimits: func() error { return nil }})
	var busy time.Duration
	n := 0
	for b.Loop() {
		if pause > 0 {
			<-time.After(pause)
		}
		began := time.Now()
		if _, err := s.Run(context.Background(), Command{Text: "true", Timeout: time.Minute, OutputBytes: 1 << 10}); err != nil {
			b.Fatal(err)
		}
		busy += time.Since(began)
		n++
	}
	b.ReportMetric(float64(busy.Microseconds())/float64(n), "mean-us")
	if err := s.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
