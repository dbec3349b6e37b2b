package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/berth-dev/berth/test/localagent"
)

var (
	seed    = flag.Uint64("seed", 0, "first seed; 0 draws one")
	scripts = flag.Int("scripts", 1000, "how many scripts")
	program = flag.String("agent", "", "an agent that was built before")
)

// pairs is how many scripts run at a time: some of them wait for time-outs.
const pairs = 6

// TestSessionIsAPlainBash: what a session's shell does is what one bash does.
func TestSessionIsAPlainBash(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = rand.Uint64() >> 24
	}
	t.Logf("seeds %d to %d; -seed=N -scripts=1 repeats one", first, first+uint64(*scripts)-1)
	path := agentProgram(t)
	seeds := make(chan uint64)
	var running sync.WaitGroup
	for i := range pairs {
		p, err := NewPair(t.Context(), path, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		running.Go(func() {
			for seed := range seeds {
				s := Generate(seed)
				if difference := p.Run(t.Context(), s); difference != "" {
					t.Error(p.Explain(t.Context(), s, difference))
				}
			}
		})
	}
	for i := range uint64(*scripts) {
		seeds <- first + i
	}
	close(seeds)
	running.Wait()
}

var build = sync.OnceValues(func() (string, error) { return localagent.Build(buildDir) })

func agentProgram(t *testing.T) string {
	t.Helper()
	if *program != "" {
		return *program
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
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
	s := Script{Parts: []Part{{Commands: []string{"a", "b"}}, {Commands: []string{"c", "bad", "d"}, Before: []Interruption{{}}}, {Commands: []string{"e"}}}}
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
	if len(got.Parts) != 1 || got.Parts[0].Text() != "bad" || len(got.Parts[0].Before) != 0 {
		t.Errorf("want the bad command alone, got %+v", got)
	}
	if few := Shrink(s, differs, 1); len(few.Parts) != 2 {
		t.Errorf("want one step, got %+v", few)
	}
}
