package dispatch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// streaming is an agent whose commands write pieces and end with an error.
type streaming struct {
	Agent
	pieces []string
	err    error
	begun  int
}

func (s *streaming) ExecStream(_ context.Context, _ client.Pod, _ client.ExecRequest, _ time.Duration, sink func(byte, []byte) error) (*client.ExecResult, error) {
	s.begun++
	for _, piece := range s.pieces {
		if err := sink(client.FrameStdout, []byte(piece)); err != nil {
			return nil, err
		}
	}
	return &client.ExecResult{ExitCode: 7}, s.err
}

func (*streaming) Bind(context.Context, client.Pod, client.Session) error { return nil }

// A command that has written something has run, whatever its agent says of it
// afterwards, and is never sent again. One that was cut off ends as its pod did.
func TestStreamedCommand(t *testing.T) {
	killed := *newOne().rec
	killed.Ready, killed.Reason = false, "OOMKilled"
	killed.Termination = &berthv1alpha1.Termination{Reason: "OOMKilled", Message: "memory", Time: metav1.Unix(1, 0)}
	const (
		lost   = "the connection to the sandbox was lost; what was asked may have run"
		notUse = "the sandbox's agent gave an answer that can't be used"
	)
	refusal := func(status int, code string) error {
		return &client.Error{Status: status, Code: code, Message: "no"}
	}
	cut := fmt.Errorf("%w: cut off: %w", client.ErrBadAnswer, io.ErrUnexpectedEOF)
	tests := map[string]struct {
		pieces  []string
		err     error
		becomes *session.Record
		want    string
		begun   int
	}{
		"fine":                           {[]string{"a", "b"}, nil, nil, "", 1},
		"silent and fine":                {nil, nil, nil, "", 1},
		"broken":                         {[]string{"a"}, io.ErrUnexpectedEOF, nil, lost, 1},
		"cut off":                        {[]string{"a"}, cut, nil, lost, 1},
		"cut off by the kernel":          {[]string{"a"}, cut, &killed, lost + ": OOMKilled: memory", 1},
		"lying":                          {[]string{"a"}, client.ErrBadAnswer, nil, notUse, 1},
		"refused":                        {nil, refusal(429, "queue_full"), nil, "no; nothing was run: try again", 1},
		"refused after output":           {[]string{"a"}, refusal(429, "queue_full"), nil, notUse, 1},
		"session required after output":  {[]string{"a"}, refusal(409, "session_required"), nil, notUse, 1},
		"gone after output":              {[]string{"a"}, refusal(410, "gone"), nil, notUse, 1},
		"unauthorized after output":      {[]string{"a"}, refusal(401, "unauthorized"), nil, notUse, 1},
		"session required before output": {nil, refusal(409, "session_required"), nil, "no", 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newOne()
				agent := &streaming{pieces: tc.pieces, err: tc.err}
				d := New(agent, store, store, nil, slog.New(slog.DiscardHandler), func(string) {})
				if tc.becomes != nil {
					time.AfterFunc(time.Second, func() { store.set(tc.becomes) })
				}
				heard := 0
				result, err := d.Exec(t.Context(), session.Request{}, Command{Source: "x", Output: func(byte, []byte) { heard++ }})
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != tc.want || err == nil && result.ExitCode != 7 {
					t.Errorf("error %q, result %+v; want %q", got, result, tc.want)
				}
				if heard != len(tc.pieces) || agent.begun != tc.begun {
					t.Errorf("heard %d pieces of %d, begun %d times, want %d", heard, len(tc.pieces), agent.begun, tc.begun)
				}
			})
		})
	}
}
