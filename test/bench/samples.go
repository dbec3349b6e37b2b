package main

import (
	"slices"
	"time"
)

// samples are durations of one thing, done again and again.
type samples []time.Duration

// percentile gives the sample at rank p (0 to 100) by the nearest-rank method.
func (s samples) percentile(p float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(p/100*float64(len(sorted))+0.5) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

func (s samples) mean() time.Duration {
	if len(s) == 0 {
		return 0
	}
	var sum time.Duration
	for _, sample := range s {
		sum += sample
	}
	return sum / time.Duration(len(s))
}

// perSecond is the rate, in MiB/s, at which so many bytes were moved each time, by
// the median.
func (s samples) perSecond(bytes int64) float64 {
	return float64(bytes) / (1 << 20) / s.percentile(50).Seconds()
}

// timed gives a function that runs do and tells how long that took.
func timed(do func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		started := time.Now()
		err := do()
		return time.Since(started), err
	}
}

// contender is one of several things that are measured against each other.
type contender struct {
	samples
	// do does it once and tells how long that took, clean-up apart.
	do func() (time.Duration, error)
	// perRound is how often it is done before the next has its turn.
	perRound int
}

// alternate gives the contenders their turns, round by round and in the reverse
// order in every other one, so that what drifts on the machine meets all alike. A
// twentieth as many rounds, at least one, come first and are not counted.
func alternate(rounds int, contenders ...*contender) error {
	warmUp := max(rounds/20, 1)
	for round := range warmUp + rounds {
		if round == warmUp {
			for _, c := range contenders {
				c.samples = nil
			}
		}
		order := slices.Clone(contenders)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			for range c.perRound {
				took, err := c.do()
				if err != nil {
					return err
				}
				c.samples = append(c.samples, took)
			}
		}
	}
	return nil
}
