package initproc

import (
	"os"
	"runtime"
	"testing"
)

func TestReservedThreadsStandBy(t *testing.T) {
	ReserveThreads()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	if want := runtime.GOMAXPROCS(0) + spareThreads; len(threads) < want {
		t.Errorf("%d threads, want at least %d", len(threads), want)
	}
}
