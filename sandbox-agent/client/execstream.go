package client

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Kinds of output that ExecStream hands on.
const (
	FrameStdout = wire.FrameStdout
	FrameStderr = wire.FrameStderr
)

// streamBuffer is how much of a frame is read, and handed on, at once.
const streamBuffer = 256 << 10

var streamBuffers = sync.Pool{New: func() any { b := make([]byte, streamBuffer); return &b }}

// ExecStream is Exec with the output handed to sink as it happens: what was
// written to FrameStdout and FrameStderr, each in order, data valid during the
// call. The result holds it once more, up to request.MaxOutputBytes. While sink
// takes its time, the command is slowed; its error ends command and call. A
// deadline as in Exec holds for all of it, sink included.
func (c *Client) ExecStream(ctx context.Context, pod Pod, request ExecRequest, commandTimeout time.Duration, sink func(kind byte, data []byte) error) (*ExecResult, error) {
	if commandTimeout <= 0 {
		commandTimeout = MaxCommandTimeout * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.QueueWait+commandTimeout+c.options.Grace)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	header := http.Header{"Accept": {wire.FramesType}}
	resp, err := c.do(ctx, pod, http.MethodPost, wire.ExecPath, header, request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); t != wire.FramesType {
		return nil, badAnswer("content type is not %s", wire.FramesType)
	}
	stop := func() bool { return false }
	defer func() { stop() }()
	s := stream{body: resp.Body, sink: sink, admit: func(size int64) error {
		if c.options.Admit != nil && size >= AdmitAbove {
			if err := c.options.Admit(ctx, size); err != nil {
				return err
			}
		}
		// The room that was made is others' too: a pod may not hold it by dribbling.
		stop = time.AfterFunc(c.options.Grace, func() { giveUp(context.DeadlineExceeded) }).Stop
		return nil
	}}
	result, err := s.run()
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return result, nil
}

// stream reads a body of frames.
type stream struct {
	body  io.Reader
	sink  func(kind byte, data []byte) error
	admit func(size int64) error

	stdout, stderr int64 // what came
}

// run reads up to the last frame and the end of the body.
func (s *stream) run() (*ExecResult, error) {
	buffer := streamBuffers.Get().(*[]byte)
	defer streamBuffers.Put(buffer)
	for {
		var header [wire.FrameHeader]byte
		if _, err := io.ReadFull(s.body, header[:]); err != nil {
			return nil, cutOff(err)
		}
		kind, size := header[0], int64(binary.BigEndian.Uint32(header[1:]))
		switch kind {
		case FrameStdout, FrameStderr:
			if size == 0 || size > wire.MaxFrame {
				return nil, badAnswer("a frame of %d bytes of output", size)
			}
			if err := s.output(kind, size, *buffer); err != nil {
				return nil, err
			}
		case wire.FrameResult:
			return s.result(size)
		case wire.FrameError:
			return nil, s.refusal(size)
		default:
			return nil, badAnswer("a frame of kind %d", kind)
		}
	}
}

func (s *stream) output(kind byte, size int64, buffer []byte) error {
	if kind == FrameStdout {
		s.stdout += size
	} else {
		s.stderr += size
	}
	for size > 0 {
		b := buffer[:min(size, int64(len(buffer)))]
		if _, err := io.ReadFull(s.body, b); err != nil {
			return cutOff(err)
		}
		if err := s.sink(kind, b); err != nil {
			return err
		}
		size -= int64(len(b))
	}
	return nil
}

func (s *stream) result(size int64) (*ExecResult, error) {
	if size > wire.MaxResult {
		return nil, badAnswer("a result of %d bytes", size)
	}
	if err := s.admit(size); err != nil {
		return nil, err
	}
	var result ExecResult
	if err := s.last(size, &result); err != nil {
		return nil, err
	}
	if err := checkResult(&result); err != nil {
		return nil, err
	}
	if result.StdoutBytes != s.stdout || result.StderrBytes != s.stderr {
		return nil, badAnswer("%d and %d bytes of output came, of %d and %d", s.stdout, s.stderr, result.StdoutBytes, result.StderrBytes)
	}
	return &result, nil
}

func (s *stream) refusal(size int64) error {
	if size > maxErrorBody {
		return badAnswer("an error of %d bytes", size)
	}
	var body wire.ErrorBody
	if err := s.last(size, &body); err != nil {
		return err
	}
	if s.stdout+s.stderr > 0 {
		return badAnswer("nothing ran, after output")
	}
	return &Error{Status: http.StatusInternalServerError, Code: clean(body.Error.Code, 64), Message: clean(body.Error.Message, maxMessage)}
}

// last reads the payload of the last frame, and to the end of the body, so that
// the connection is kept.
func (s *stream) last(size int64, v any) error {
	data := make([]byte, size)
	if _, err := io.ReadFull(s.body, data); err != nil {
		return cutOff(err)
	}
	if n, err := io.ReadFull(s.body, make([]byte, 1)); n > 0 {
		return badAnswer("something follows the last frame")
	} else if !errors.Is(err, io.EOF) {
		return cutOff(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return badAnswer("not the JSON that was due")
	}
	return nil
}

// cutOff is the error for a body that ended, or broke, before its last frame.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it was cut off: %w", ErrBadAnswer, err)
	}
	return fmt.Errorf("read answer: %w", err)
}
