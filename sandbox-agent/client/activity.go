package client

import (
	"context"
	"net/http"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Activity is what goes on in a session, and for how long nothing did.
type Activity = wire.Activity

// Activity asks what goes on in the session. It is the sandbox's own word: an
// idle time longer than the session's is a lie.
func (c *Client) Activity(ctx context.Context, pod Pod) (*Activity, error) {
	return c.activity(ctx, pod, http.MethodGet, wire.ActivityPath, nil)
}

// Quiesce lets the session take no more calls if nothing went on for idle. The
// answer's Quiesced says whether it was so; once it was, it stays so until the
// container ends, and every call gives ErrGone.
func (c *Client) Quiesce(ctx context.Context, pod Pod, idle time.Duration) (*Activity, error) {
	ms := int64((idle + time.Millisecond - 1) / time.Millisecond) // never sooner than asked
	return c.activity(ctx, pod, http.MethodPost, wire.QuiescePath, wire.Quiesce{IdleMS: ms})
}

func (c *Client) activity(ctx context.Context, pod Pod, method, path string, body any) (*Activity, error) {
	var a Activity
	if err := c.small(ctx, pod, method, path, body, &a); err != nil {
		return nil, err
	}
	if a.Running < 0 || a.Queued < 0 || a.Other < 0 || a.Processes < 0 || a.IdleMS < 0 {
		return nil, badAnswer("a negative count")
	}
	return &a, nil
}
