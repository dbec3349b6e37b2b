package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Bounds of what either side reads.
const (
	maxMessage = 4 << 10
	// maxProgram bounds an encoded Program: a command of 1 MiB and environments as
	// large as the kernel takes.
	maxProgram = 16 << 20
	// maxFiles is how many descriptors a program may be started with.
	maxFiles = 8
	// before them in a message: the program's memory file and its directory.
	extraFiles = 2
)

// Program is what to start.
type Program struct {
	Path string   // of the executable
	Argv []string // the name first
	Env  []string // NAME=value
	// Terminal makes descriptor 0 the controlling terminal.
	Terminal bool
}

// request is what the agent sends. With it come a memory file that holds the
// Program, its directory and its descriptors from 0 up.
type request struct {
	Seq uint64 `json:"seq"`
}

// Kinds of a reply.
const (
	ready   = "ready"   // requests are taken from now on
	again   = "again"   // the request came without its descriptors: too many files were open
	taken   = "taken"   // the request came: from here on it may run
	started = "started" // as PID; a pidfd comes with it where the kernel has them
	failed  = "failed"  // nothing runs, for Error
	exited  = "exited"  // PID ended with Code, 128+n for signal n
)

// reply is what the supervisor sends.
type reply struct {
	Kind  string `json:"kind"`
	Seq   uint64 `json:"seq,omitempty"` // of the request
	PID   int    `json:"pid,omitempty"`
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

var errMessage = errors.New("malformed message")

func parseRequest(b []byte) (request, error) {
	var r request
	if err := strict(b, &r); err != nil {
		return r, err
	}
	if r.Seq == 0 {
		return r, errMessage
	}
	return r, nil
}

func parseReply(b []byte) (reply, error) {
	var r reply
	if err := strict(b, &r); err != nil {
		return r, err
	}
	if !r.wellFormed() {
		return reply{}, errMessage
	}
	return r, nil
}

// wellFormed tells whether r has what its kind needs, and nothing else.
func (r reply) wellFormed() bool {
	var want reply
	switch r.Kind {
	case ready:
		want = reply{Kind: ready}
	case again, taken:
		want = reply{Kind: r.Kind, Seq: max(r.Seq, 1)}
	case started:
		want = reply{Kind: started, Seq: max(r.Seq, 1), PID: max(r.PID, 2)}
	case failed:
		want = reply{Kind: failed, Seq: max(r.Seq, 1), Error: r.Error}
	case exited:
		want = reply{Kind: exited, PID: max(r.PID, 2), Code: min(max(r.Code, 0), 255)}
	}
	return r.Kind != "" && r == want && (r.Kind != failed || r.Error != "")
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errMessage
	}
	return nil
}

// descriptors returns those that came beside a message, closed on exec.
func descriptors(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // of another kind
		}
		all = append(all, fds...)
	}
	return all, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
