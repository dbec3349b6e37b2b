package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// The wire's types of background processes.
type (
	// ProcessRequest is a background process to start.
	ProcessRequest = wire.ProcessRequest
	// Process is one background process.
	Process = wire.Process
	// ProcessList are all of them.
	ProcessList = wire.ProcessList
	// ProcessOutput is a part of what one wrote.
	ProcessOutput = wire.ProcessOutput
	// ProcessInput is what one is to read.
	ProcessInput = wire.ProcessInput
	// ProcessInputResult says how much of it was taken.
	ProcessInputResult = wire.ProcessInputResult
	// Terminal is the size of one.
	Terminal = wire.Terminal
)

// Constants of the wire that callers need.
const (
	KindProcess        = wire.KindProcess
	KindJob            = wire.KindJob
	MaxProcesses       = wire.MaxProcesses
	ProcessOutputBytes = wire.ProcessOutputBytes
	DefaultOutputChunk = wire.DefaultOutputChunk
	MaxOutputChunk     = wire.MaxOutputChunk
	MaxOutputWait      = wire.MaxOutputWait // seconds
	MaxTerminal        = wire.MaxTerminal
)

// ValidExecID tells whether id may name a command or a process.
func ValidExecID(id string) bool { return wire.ValidExecID(id) }

// OutputQuery says which part of a process's output is wanted. The zero value
// is what there is from the start, without waiting.
type OutputQuery struct {
	Offset int64 // bytes; negative: from the end
	Limit  int   // bytes; 0 is DefaultOutputChunk, more than MaxOutputChunk is that
	// Wait is for how long to wait for output beyond Offset, or the process's end;
	// more than MaxOutputWait seconds is that.
	Wait time.Duration
}

func (q OutputQuery) encode() string {
	v := url.Values{}
	if q.Offset != 0 {
		v.Set(wire.OutputOffset, strconv.FormatInt(q.Offset, 10))
	}
	if q.Limit > 0 {
		v.Set(wire.OutputLimit, strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		v.Set(wire.OutputWait, strconv.FormatFloat(q.Wait.Seconds(), 'f', 3, 64))
	}
	return v.Encode()
}

// StartProcess starts a process when the commands before it are done, or
// returns the one that has the request's ID and command already.
func (c *Client) StartProcess(ctx context.Context, pod Pod, request ProcessRequest) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.QueueWait+c.options.Grace)
	defer cancel()
	resp, err := c.do(ctx, pod, http.MethodPost, wire.ProcessesPath, nil, request)
	if err != nil {
		return nil, err
	}
	var p Process
	if err := decode(resp, maxSmallAnswer, &p); err != nil {
		return nil, err
	}
	if request.ID != "" && p.ID != request.ID {
		return nil, badAnswer("another process")
	}
	return &p, checkProcess(&p)
}

// maxProcessList is more than any list of MaxProcesses takes, control bytes in
// their commands included.
const maxProcessList = 1 << 20

// Processes lists the session's processes, the oldest first.
func (c *Client) Processes(ctx context.Context, pod Pod) (*ProcessList, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	resp, err := c.do(ctx, pod, http.MethodGet, wire.ProcessesPath, nil, nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Processes fewProcesses `json:"processes"`
	}
	if err := c.decodeAdmitted(ctx, resp, maxProcessList, &answer); err != nil {
		return nil, err
	}
	l := ProcessList{Processes: answer.Processes}
	return &l, checkProcessList(&l)
}

// fewProcesses is read no further than one more than there may be: from each
// three bytes of a list of empty ones would come over a hundred.
type fewProcesses []Process

// UnmarshalJSON implements json.Unmarshaler.
func (f *fewProcesses) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("not a list")
	}
	for *f = nil; d.More(); {
		if len(*f) == MaxProcesses {
			return errors.New("too many processes")
		}
		var p Process
		if err := d.Decode(&p); err != nil {
			return err
		}
		*f = append(*f, p)
	}
	return nil
}

// Process returns one of them. It returns ErrNotFound when there is none.
func (c *Client) Process(ctx context.Context, pod Pod, id string) (*Process, error) {
	path, err := processPath(id, "")
	if err != nil {
		return nil, err
	}
	var p Process
	if err := c.small(ctx, pod, http.MethodGet, path, nil, &p); err != nil {
		return nil, err
	}
	if p.ID != id {
		return nil, badAnswer("another process")
	}
	return &p, checkProcess(&p)
}

// ProcessOutput returns a part of what a process wrote, once there is some or
// the query's wait is over.
func (c *Client) ProcessOutput(ctx context.Context, pod Pod, id string, q OutputQuery) (*ProcessOutput, error) {
	path, err := processPath(id, wire.ProcessOutputPath)
	if err != nil {
		return nil, err
	}
	q.Wait = min(max(q.Wait, 0), MaxOutputWait*time.Second)
	ctx, cancel := context.WithTimeout(ctx, q.Wait+c.options.Grace)
	defer cancel()
	if query := q.encode(); query != "" {
		path += "?" + query
	}
	resp, err := c.do(ctx, pod, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	var o ProcessOutput
	if err := c.decodeAdmitted(ctx, resp, maxOutputAnswer, &o); err != nil {
		return nil, err
	}
	return &o, checkOutput(q, &o)
}

// ProcessInput gives a process something to read, or its terminal a size. It
// takes some seconds when the process doesn't read.
func (c *Client) ProcessInput(ctx context.Context, pod Pod, id string, input ProcessInput) (*ProcessInputResult, error) {
	path, err := processPath(id, wire.ProcessInputPath)
	if err != nil {
		return nil, err
	}
	var r ProcessInputResult
	if err := c.small(ctx, pod, http.MethodPost, path, input, &r); err != nil {
		return nil, err
	}
	if r.Written < 0 || r.Written > len(input.Data) {
		return nil, badAnswer("%d of %d bytes written", r.Written, len(input.Data))
	}
	return &r, nil
}

// SignalProcess sends a signal to a process's group; KILL goes to all that the
// process started.
func (c *Client) SignalProcess(ctx context.Context, pod Pod, id, signal string) error {
	path, err := processPath(id, wire.ProcessSignalPath)
	if err != nil {
		return err
	}
	return c.small(ctx, pod, http.MethodPost, path, wire.ProcessSignal{Signal: signal}, nil)
}

// CancelProcess kills a process with all that it started, and lets it be known as
// cancelled. One that has ended stays as it is.
func (c *Client) CancelProcess(ctx context.Context, pod Pod, id string) error {
	path, err := processPath(id, "")
	if err != nil {
		return err
	}
	return c.small(ctx, pod, http.MethodDelete, path, nil, nil)
}

func processPath(id, suffix string) (string, error) {
	if !wire.ValidExecID(id) {
		// Nothing is wrong with the pod.
		return "", &Error{Status: http.StatusNotFound, Code: wire.CodeNotFound, Message: "there is no such process"}
	}
	return wire.ProcessesPath + "/" + id + suffix, nil
}
