package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Children maps the name of each program that a process is the parent of to its
// process ID. Of several with one name it has one.
func Children(parent int) (map[string]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // not a process
		}
		if st, err := readStat(pid); err != nil || st.parent != parent {
			continue // ended meanwhile, or another's
		}
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		program, _, _ := strings.Cut(string(cmdline), "\x00")
		found[filepath.Base(program)] = pid
	}
	return found, nil
}
