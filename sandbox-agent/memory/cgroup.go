package memory

import (
	"bytes"
	"strconv"

	"github.com/berth-dev/berth/sandbox-agent/cgroup"
)

// Files that count kills.
const (
	eventsV1 = "memory.oom_control"
	eventsV2 = "memory.events"
)

// find returns the cgroup that counts this container's memory.
func find(proc string) (cgroup.Dir, error) { return cgroup.Find(proc, "memory", eventsV1, eventsV2) }

// events names the file that counts kills.
func events(c cgroup.Dir) string {
	if c.V2 {
		return eventsV2
	}
	return eventsV1
}

// limitOf names the file that holds the limit in bytes.
func limitOf(c cgroup.Dir) string {
	if c.V2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

// count returns the number after name in a file of "name number" lines.
func count(content []byte, name string) (n uint64, ok bool) {
	for line := range bytes.Lines(content) {
		if key, number, found := bytes.Cut(line, []byte(" ")); found && string(key) == name {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(number)), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
