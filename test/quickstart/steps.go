package main

import (
	"fmt"
	"strings"
	"time"
)

// steps prints what was done and how long it took, one numbered line each.
type steps struct {
	started time.Time
	last    time.Time
	count   int
}

func newSteps() *steps {
	now := time.Now()
	return &steps{started: now, last: now}
}

// done reports what was done since the previous step, with details below it.
func (s *steps) done(what string, details ...string) {
	now := time.Now()
	s.count++
	fmt.Printf("%2d  %-64s %7.2f s\n", s.count, what, now.Sub(s.last).Seconds())
	for _, detail := range details {
		for line := range strings.Lines(strings.TrimRight(detail, "\n") + "\n") {
			fmt.Print("      ", line)
		}
	}
	s.last = time.Now()
}
