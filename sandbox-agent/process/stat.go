package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// TicksPerSecond is the unit of Stat.Start: USER_HZ, 100 on every Linux.
const TicksPerSecond = 100

// Stat is what /proc/PID/stat says of one process.
type Stat struct {
	PID, Parent, Group int
	State              byte   // R, S, D, T, Z, ...
	Start              uint64 // ticks since boot
}

// Zombie tells whether the process has ended.
func (s Stat) Zombie() bool { return s.State == 'Z' || s.State == 'X' }

var errStat = errors.New("unexpected form of /proc/PID/stat")

// parseStat reads the content of a /proc/PID/stat. The name, in parentheses,
// may itself hold anything, parentheses too.
func parseStat(b []byte) (Stat, error) {
	var s Stat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open || len(b) < end+3 {
		return s, errStat
	}
	fields := bytes.Fields(b[end+1:]) // from field 3, the state
	if len(fields) < 20 || len(fields[0]) != 1 {
		return s, errStat
	}
	var errs [4]error
	s.State = fields[0][0]
	s.PID, errs[0] = strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	s.Parent, errs[1] = strconv.Atoi(string(fields[1]))
	s.Group, errs[3] = strconv.Atoi(string(fields[2]))
	s.Start, errs[2] = strconv.ParseUint(string(fields[19]), 10, 64)
	if errors.Join(errs[:]...) != nil {
		return s, errStat
	}
	return s, nil
}

// maxStat is longer than any /proc/PID/stat.
const maxStat = 4096

func readStat(pid int) (Stat, error) {
	return readStatAt(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/stat", make([]byte, maxStat))
}

func readStatAt(dir int, path string, buffer []byte) (Stat, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Stat{}, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return Stat{}, err
	}
	return parseStat(buffer[:n])
}

// Scan lists the processes of this PID namespace. Those that end meanwhile may
// be missing, and those that begin.
func Scan() ([]Stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	fd, buffer := int(dir.Fd()), make([]byte, maxStat)
	all := make([]Stat, 0, len(names))
	listed := make(map[int]bool, len(names))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if s, err := readStatAt(fd, name+"/stat", buffer); err == nil {
			all = append(all, s)
			listed[s.PID] = true
		}
	}
	for i, s := range all {
		if s.Parent == 0 || listed[s.Parent] {
			continue
		}
		// Its parent has ended meanwhile: it has another now.
		if now, err := readStatAt(fd, strconv.Itoa(s.PID)+"/stat", buffer); err == nil && now.Start == s.Start {
			all[i] = now
		}
	}
	return all, nil
}

// Now is the time as Stat.Start counts it.
func Now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return uint64(ts.Sec)*TicksPerSecond + uint64(ts.Nsec)/(1e9/TicksPerSecond)
}
