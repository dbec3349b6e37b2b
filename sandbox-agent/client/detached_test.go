package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestImpossibleStatesAreRefused: a lying agent's answers go no further.
func TestImpossibleStatesAreRefused(t *testing.T) {
	t.Parallel()
	const ended = `"id":"a","ended":"2026-01-01T00:00:00Z"`
	for name, body := range map[string]string{
		"other id":         `{"id":"b","running":true}`,
		"runs and ended":   `{` + ended + `,"running":true}`,
		"runs, result":     `{"id":"a","running":true,"result":{}}`,
		"runs, error":      `{"id":"a","running":true,"error":{}}`,
		"runs, cancelled":  `{"id":"a","running":true,"cancelled":true}`,
		"no end":           `{"id":"a","result":{}}`,
		"no result":        `{` + ended + `}`,
		"both":             `{` + ended + `,"result":{},"error":{}}`,
		"exit code":        `{` + ended + `,"result":{"exit_code":256}}`,
		"negative expiry":  `{` + ended + `,"result":{},"expires_in":-1}`,
		"too long to keep": `{` + ended + `,"result":{},"expires_in":3601}`,
		"no JSON":          `here`,
	} {
		c, pod := lying(t, Options{}, answer(http.StatusOK, body))
		if _, err := c.ExecState(t.Context(), pod, "a", 0); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: got %v", name, err)
		}
		c, pod = lying(t, Options{}, answer(http.StatusAccepted, body))
		if _, _, err := c.ExecDetachable(t.Context(), pod, ExecRequest{Command: "a", ID: "a", DetachAfter: 1}); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: detached: got %v", name, err)
		}
	}
	c, pod := lying(t, Options{}, answer(http.StatusOK, `{`+ended+`,"expires_in":3600,"error":{"code":"draining","message":"a\u0007`+strings.Repeat("b", 2000)+`"}}`))
	s, err := c.ExecState(t.Context(), pod, "a", 0)
	if err != nil || s.Error.Code != "draining" || len(s.Error.Message) > maxMessage || strings.Contains(s.Error.Message, "\a") {
		t.Errorf("a good one: got %+v, %v", s, err)
	}
	c, pod = lying(t, Options{}, answer(http.StatusOK, `{"exit_code":256}`))
	if _, _, err := c.ExecDetachable(t.Context(), pod, ExecRequest{Command: "a", ID: "a", DetachAfter: 1}); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("a result: got %v", err)
	}
}

// TestDetachableIsBoundedByItsTime: an agent that doesn't answer by then doesn't
// hold its caller.
func TestDetachableIsBoundedByItsTime(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{Grace: 10 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that the client is gone
		<-r.Context().Done()
	})
	_, _, err := c.ExecDetachable(t.Context(), pod, ExecRequest{Command: "a", ID: "a", DetachAfter: 0.01})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := c.ExecState(t.Context(), pod, "a", time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its state: got %v", err)
	}
	for _, r := range []ExecRequest{{Command: "a", ID: "a"}, {Command: "a", DetachAfter: 1}} {
		if _, _, err := c.ExecDetachable(t.Context(), pod, r); !errors.Is(err, ErrNotSent) {
			t.Errorf("%+v: got %v", r, err)
		}
	}
	if _, err := c.ExecState(t.Context(), pod, "../x", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("no id: got %v", err)
	}
}
