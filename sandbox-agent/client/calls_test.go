package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestCallIsNamedInEachRequest(t *testing.T) {
	t.Parallel()
	var names []string
	c, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		names = append(names, r.Header.Get("Berth-Call"))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(200, `{"processes":[]}`)(w, r)
	})
	key := strings.Repeat("0a", 32)
	call := WithCall(t.Context(), key, NewCallID())
	for _, ctx := range []context.Context{call, call, WithCall(t.Context(), key, NewCallID()), WithCall(t.Context(), key[1:], NewCallID()), WithCall(t.Context(), key, "id"), t.Context()} {
		if _, err := c.Processes(ctx, pod); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 6 || names[0] != names[1] || names[0] == names[2] {
		t.Fatalf("names %q, want one of the call, and another of another call", names)
	}
	for _, name := range names[:3] {
		if given, _, _ := strings.Cut(name, "."); given != key || len(name) != 129 {
			t.Errorf("name %q, want the key and a random id", name)
		}
	}
	if names[3]+names[4]+names[5] != "" {
		t.Errorf("names %q, want none for a key of another form, and without a call", names[3:])
	}
	if err := c.CancelCall(call, pod, key); err != nil || names[6] != "" {
		t.Errorf("cancel: %v, as part of %q; want it to be no part of what it cancels", err, names[6])
	}
	if err := c.CancelCall(call, pod, key+"0"); !errors.Is(err, ErrNotSent) || len(names) != 7 {
		t.Errorf("want ErrNotSent for what is no key, got %v", err)
	}
}

func TestAnswersToCancelCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"none":     {404, `{"error":{"code":"not_found","message":"m"}}`, ErrNotFound},
		"several":  {409, `{"error":{"code":"many_calls","message":"m"}}`, ErrManyCalls},
		"older":    {404, `{"error":{"code":"not_found","message":"there is no such route; see docs/agent.md"}}`, ErrNoRoute},
		"no agent": {200, strings.Repeat("x", 1<<20), ErrBadAnswer},
	} {
		c, pod := lying(t, Options{}, answer(tc.status, tc.body))
		if err := c.CancelCall(t.Context(), pod, strings.Repeat("0", 64)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func TestAnswersAboutCalls(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0a", 32)
	several := func(n int) string { return `{"ids":["` + id + strings.Repeat(`","`+id, n-1) + `"]}` }
	for name, tc := range map[string]struct {
		body string
		want int // -1: a bad answer
	}{
		"none":       {`{"ids":[]}`, 0},
		"one":        {several(1), 1},
		"most":       {several(16), 16},
		"more":       {several(17), -1},
		"no id":      {`{"ids":["x"]}`, -1},
		"not a list": {`{"ids":7}`, -1},
	} {
		c, pod := lying(t, Options{}, answer(200, tc.body))
		ids, err := c.Calls(t.Context(), pod, id)
		if len(ids) != max(tc.want, 0) || errors.Is(err, ErrBadAnswer) != (tc.want < 0) {
			t.Errorf("%s: %d ids, %v", name, len(ids), err)
		}
	}
	c, pod := lying(t, Options{}, answer(200, "{}"))
	if _, err := c.Calls(t.Context(), pod, id[1:]); !errors.Is(err, ErrNotSent) {
		t.Errorf("want ErrNotSent for what is no key, got %v", err)
	}
}
