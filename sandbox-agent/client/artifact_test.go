package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pausing sends a byte after each pause, until one is longer than it has.
type pausing struct {
	ctx    context.Context
	pauses []time.Duration
}

func (s *pausing) Read(p []byte) (int, error) {
	if len(s.pauses) == 0 {
		return 0, io.EOF
	}
	pause := s.pauses[0]
	s.pauses = s.pauses[1:]
	select {
	case <-time.After(pause):
		return copy(p, "x"), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (*pausing) Close() error { return nil }

// An artifact may take any time, on either side: only an agent that sends nothing
// while it is waited for is given up.
func TestArtifactMayTakeAnyTimeButNotStall(t *testing.T) {
	const stall = time.Minute
	for name, tc := range map[string]struct {
		pauses []time.Duration
		want   error
	}{
		"a byte just in time": {[]time.Duration{stall - 1, stall - 1, stall - 1}, nil},
		"a byte too late":     {[]time.Duration{stall - 1, stall + 1, 0}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				timer := time.AfterFunc(stall, func() { cancel(context.DeadlineExceeded) })
				timer.Stop()
				b := &exactBody{ctx: ctx, cancel: cancel, body: &pausing{ctx, tc.pauses}, left: 3, stall: timer, timeout: stall}
				defer b.Close()
				var err error
				for err == nil {
					_, err = b.Read(make([]byte, 8))
					<-time.After(2 * stall) // what the reader takes is its own affair
				}
				if errors.Is(err, io.EOF) != (tc.want == nil) || tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("error %v, want %v", err, tc.want)
				}
			})
		})
	}
}

func TestArtifactOfAnAgentThatSaysNothing(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	c, pod := lying(t, Options{StallTimeout: 10 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(done)
	})
	if _, err := c.ReadArtifact(t.Context(), pod, "0123456789abcdef0123456789abcdef", Span{}, 100); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the end of its time", err)
	}
	<-done
}
