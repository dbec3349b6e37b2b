package shell

import (
	"bufio"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/process"
)

// record is one line of what a shell tells.
type record struct {
	kind  byte // S, R, N, D, P, and F for a fence
	value int
}

// readRecords parses the lines of a control pipe until it is closed. What is
// no record is dropped: commands may find the pipe through /proc.
func (l *life) readRecords() {
	defer close(l.records)
	in := bufio.NewReaderSize(l.control, 512)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // no record is so long
		}
		if err != nil {
			return
		}
		r, ok := parseRecord(strings.TrimSuffix(string(line), "\n"))
		if !ok {
			continue
		}
		select {
		case l.records <- r:
		case <-l.done:
			return
		}
	}
}

// rest takes what a shell that has ended said and nobody has read: the status of
// its last command, if it came so far, and which spare it forked then.
func (l *life) rest() (status int, ok bool) {
	// A command may have filled the pipe, or begun a line there.
	if err := l.fence.SetWriteDeadline(time.Now().Add(settleTime)); err != nil {
		return 0, false
	}
	if _, err := l.fence.Write([]byte("\nF0\n")); err != nil {
		return 0, false
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		select {
		case r := <-l.records:
			switch r.kind {
			case 'D':
				status, ok = r.value, true
			case 'S':
				if spare, err := process.NewPin(r.value); err == nil {
					l.keepOne(spare)
				}
			case 'F':
				return status, ok
			}
		case <-timer.C: // what is left in the pipe hides the fence
			return status, ok
		}
	}
}

// maxRecord is longer than any record.
const maxRecord = 32

func parseRecord(line string) (record, bool) {
	if len(line) < 2 || len(line) > maxRecord || !strings.Contains("SRNDPF", line[:1]) {
		return record{}, false
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 {
		return record{}, false
	}
	return record{line[0], n}, true
}
