package main

import (
	"fmt"
	"os"
	"strings"

	pprof "github.com/google/pprof/profile"
)

// profile says what a process's time was used for.
type profile struct {
	of     string // which process
	shares []share
}

type share struct {
	name    string
	percent float64
}

// group is a kind of work, and how the names of its functions begin.
type group struct {
	name     string
	prefixes []string
}

// groups are the kinds of work that a profile is split into. A sample belongs to
// the innermost function that is of one; what is of none is the Go runtime's:
// switching between goroutines, timers and waiting for sockets.
var groups = []group{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcAssistAlloc"}},
	{"MCP SDK and its JSON", []string{"github.com/modelcontextprotocol/", "github.com/segmentio/", "github.com/google/jsonschema-go/"}},
	{"signatures", []string{"crypto/", "github.com/golang-jwt/"}},
	{"HTTP", []string{"net/http.", "net."}},
	{"running commands", []string{"github.com/berth-dev/berth/sandbox-agent/shell", "github.com/berth-dev/berth/sandbox-agent/process"}},
	{"the rest of Berth", []string{"github.com/berth-dev/berth/"}},
}

const restOfRuntime = "Go runtime: goroutines, timers, polling"

// readProfile splits a CPU profile, as runtime/pprof writes it, into groups.
func readProfile(of, path string) (profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return profile{}, err
	}
	defer file.Close()
	parsed, err := pprof.Parse(file)
	if err != nil {
		return profile{}, fmt.Errorf("read profile %s: %w", path, err)
	}
	p := splitProfile(of, parsed)
	if len(p.shares) == 0 {
		return profile{}, fmt.Errorf("profile %s holds no samples", path)
	}
	return p, nil
}

// clientLabel is on the samples of a client in the same process.
const clientLabel = "client"

func splitProfile(of string, parsed *pprof.Profile) profile {
	counts := map[string]float64{}
	total := 0.0
	for _, sample := range parsed.Sample {
		if len(sample.Label[clientLabel]) > 0 {
			continue
		}
		n := float64(sample.Value[len(sample.Value)-1])
		counts[groupOf(sample)] += n
		total += n
	}
	p := profile{of: of}
	for _, g := range append(groups[:len(groups):len(groups)], group{name: restOfRuntime}) {
		if n := counts[g.name]; n > 0 {
			p.shares = append(p.shares, share{g.name, 100 * n / total})
		}
	}
	return p
}

func groupOf(sample *pprof.Sample) string {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			for _, g := range groups {
				for _, prefix := range g.prefixes {
					if strings.HasPrefix(line.Function.Name, prefix) {
						return g.name
					}
				}
			}
		}
	}
	return restOfRuntime
}
