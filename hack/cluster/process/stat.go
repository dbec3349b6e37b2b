package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat is what is read of /proc/PID/stat, see proc_pid_stat(5).
type stat struct {
	state  byte   // field 3: 'Z' is a zombie
	parent int    // field 4
	start  uint64 // field 22, in clock ticks since the machine's start
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, unix.ESRCH) { // it ended between open and read
		err = fs.ErrNotExist
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(data))
}

// parseStat finds the fields behind the second one, the program's name in
// parentheses, which may itself hold spaces and parentheses.
func parseStat(line string) (stat, error) {
	const behind = 3 // the number of the first field that is behind the name
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= 22-behind {
		return stat{}, fmt.Errorf("%q is no line of /proc/PID/stat", line)
	}
	parent, err := strconv.Atoi(fields[4-behind])
	if err != nil {
		return stat{}, err
	}
	start, err := strconv.ParseUint(fields[22-behind], 10, 64)
	return stat{state: fields[3-behind][0], parent: parent, start: start}, err
}
