package files

import "sync"

// key is what a file's name is in.
type key struct {
	device, inode uint64 // of the directory
	name          string
}

// locks has one lock for each file that is being replaced.
type locks struct {
	mu   sync.Mutex
	held map[key]*lock
}

type lock struct {
	mu    sync.Mutex
	users int
}

// lock waits until nobody else replaces the file, and keeps it so until unlock.
func (l *locks) lock(k key) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[key]*lock{}
	}
	one := l.held[k]
	if one == nil {
		one = &lock{}
		l.held[k] = one
	}
	one.users++
	l.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, k)
		}
	}
}
