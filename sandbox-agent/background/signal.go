package background

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lastSignal is the highest number of a signal (SIGRTMAX).
const lastSignal = 64

var signalNumber = regexp.MustCompile(`^[1-9][0-9]?$`)

// ParseSignal reads a name with or without SIG, in capitals, or a number.
func ParseSignal(s string) (unix.Signal, bool) {
	if signalNumber.MatchString(s) {
		n, err := strconv.Atoi(s)
		return unix.Signal(n), err == nil && n <= lastSignal
	}
	n := unix.SignalNum("SIG" + strings.TrimPrefix(s, "SIG"))
	return n, n > 0
}
