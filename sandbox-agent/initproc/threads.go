package initproc

import (
	"runtime"
	"sync"
)

// spareThreads is how many threads stand by beside those that run Go code: more
// than the agent's calls into the kernel that may block at a time.
const spareThreads = 32

// ReserveThreads makes the threads that the Go runtime may come to need. It keeps
// them for good, and takes an idle one before it makes another. Without them a
// session that fills the process table would end the agent: a runtime that can't
// make a thread aborts.
func ReserveThreads() {
	n := runtime.GOMAXPROCS(0) + spareThreads
	var made, ended sync.WaitGroup
	made.Add(n)
	for range n {
		ended.Go(func() {
			// While all are locked, each has a thread of its own.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			made.Wait()
		})
	}
	ended.Wait()
}
