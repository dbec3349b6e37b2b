package differential

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/berth-dev/berth/test/localagent"
)

var (
	seed    = flag.Uint64("seed", 0, "first seed; 0 draws one")
	scripts = flag.Int("scripts", 1000, "how many scripts")
)

// atATime is how many scripts run: some of them wait for time-outs.
const atATime = 6

// TestSessionIsAPlainBash: what a session's shell does is what one bash does.
func TestSessionIsAPlainBash(t *testing.T) {
	t.Parallel()
	first := firstSeed(t, "scripts", *scripts)
	r := Runner{Dir: t.TempDir()}
	r.check(t, first, *scripts, Generate)
}

// check runs the scripts of so many seeds.
func (r Runner) check(t *testing.T, first uint64, scripts int, generate func(seed uint64) Script) {
	t.Helper()
	if _, err := localagent.Program(); err != nil {
		t.Fatal(err)
	}
	seeds := make(chan uint64)
	var running sync.WaitGroup
	for range atATime {
		running.Go(func() {
			for seed := range seeds {
				s := generate(seed)
				if difference := r.Run(t.Context(), s); difference != "" {
					t.Error(r.Explain(t.Context(), s, difference))
				}
			}
		})
	}
	for i := range uint64(scripts) {
		seeds <- first + i
	}
	close(seeds)
	running.Wait()
}

// firstSeed tells of how to repeat what t is about to run: that many scripts, by
// the flag that says how many.
func firstSeed(t *testing.T, flag string, scripts int) uint64 {
	t.Helper()
	first := *seed
	if first == 0 {
		first = 1 + rand.Uint64()>>24
	}
	t.Logf("seeds %d to %d; all again: go test ./test/differential -run '^%s$' -seed=%d -%s=%d; one: its seed, and 1",
		first, first+uint64(scripts)-1, t.Name(), first, flag, scripts)
	return first
}

func TestGenerateIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if a, b := Generate(seed).String(), Generate(seed).String(); a != b {
			t.Errorf("seed %d gives two scripts:\n%s\n%s", seed, a, b)
		}
	}
}

// TestShrink: what is left is what differs, and nothing else.
func TestShrink(t *testing.T) {
	t.Parallel()
	s := Script{Parts: []Part{{Commands: []string{"a", "b"}}, {Commands: []string{"c", "bad", "d"}, Before: []Interruption{{}}}, {Commands: []string{"e"}}, {Commands: []string{"state"}}}}
	differs := func(s Script) bool {
		for _, p := range s.Parts {
			for _, c := range p.Commands {
				if c == "bad" {
					return true
				}
			}
		}
		return false
	}
	got := Shrink(s, differs, 100)
	if len(got.Parts) != 2 || got.Parts[0].Text() != "bad" || len(got.Parts[0].Before) != 0 {
		t.Errorf("want the bad command and the state, got %+v", got)
	}
	if few := Shrink(s, differs, 1); len(few.Parts) != 3 {
		t.Errorf("want one step, got %+v", few)
	}
}
