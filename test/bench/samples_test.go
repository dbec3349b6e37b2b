package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	var hundred samples
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, test := range []struct {
		samples samples
		p       float64
		want    time.Duration
	}{
		{nil, 50, 0},
		{samples{7}, 50, 7},
		{samples{7}, 99, 7},
		{samples{3, 1, 2}, 50, 2},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
	} {
		if got := test.samples.percentile(test.p); got != test.want {
			t.Errorf("%v.percentile(%v) = %v, want %v", test.samples, test.p, got, test.want)
		}
	}
}

func TestAlternateGivesBothTheFirstTurnEquallyOften(t *testing.T) {
	t.Parallel()
	var turns string
	turn := func(name string) func() (time.Duration, error) {
		return timed(func() error { turns += name; return nil })
	}
	a := &contender{do: turn("a"), perRound: 2}
	b := &contender{do: turn("b"), perRound: 1}
	if err := alternate(3, a, b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("aab"+"baa"+"aab"+"baa", turns); diff != "" {
		t.Errorf("turns, the first round being warm-up (-want +got):\n%s", diff)
	}
	if len(a.samples) != 6 || len(b.samples) != 3 {
		t.Errorf("counted %d and %d samples, want 6 and 3: the warm-up is not counted", len(a.samples), len(b.samples))
	}
}
