package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/token"
)

// TestTokens: each way to a request that was not signed for is 401, before
// anything is said of the route.
func TestTokens(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	now := time.Now()
	good := func() token.Claims {
		return token.NewClaims(token.Audience(a.pod.Namespace, a.pod.UID), http.MethodPost, "/v1/exec", now)
	}
	alter := func(f func(*token.Claims)) string {
		c := good()
		f(&c)
		return a.signed(t, c)
	}
	stranger, err := client.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := token.Sign(good(), keyID, privateKey(t, stranger))
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := token.Sign(good(), "key-0002", a.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, bearer := range map[string]string{
		"none":            "",
		"garbage":         "a.b.c",
		"other pod":       alter(func(c *token.Claims) { c.Audience = "sandboxes/pod-2" }),
		"other namespace": alter(func(c *token.Claims) { c.Audience = "default/pod-1" }),
		"other path":      alter(func(c *token.Claims) { c.Path = "/v1/artifacts" }),
		"other method":    alter(func(c *token.Claims) { c.Method = http.MethodDelete }),
		"expired":         alter(func(c *token.Claims) { c.IssuedAt -= 61; c.Expires -= 61 }),
		"from the future": alter(func(c *token.Claims) { c.IssuedAt += 90; c.Expires += 90 }),
		"lives too long":  alter(func(c *token.Claims) { c.Expires++ }),
		"no expiry":       alter(func(c *token.Claims) { c.Expires = 0 }),
		"no jti":          alter(func(c *token.Claims) { c.ID = "" }),
		"short jti":       alter(func(c *token.Claims) { c.ID = "abcd" }),
		"stranger's key":  foreign,
		"unknown kid":     unknown,
		"algorithm none":  "eyJhbGciOiJub25lIiwia2lkIjoia2V5LTAwMDEifQ." + strings.Split(alter(func(*token.Claims) {}), ".")[1] + ".",
		"signature cut":   strings.TrimSuffix(alter(func(*token.Claims) {}), "A")[:200],
		"enormous":        strings.Repeat("a", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := a.send(t, bearer, http.MethodPost, "/v1/exec", "application/json", `{"command":"touch ran"}`)
			if resp.StatusCode != http.StatusUnauthorized || errorCode(t, body) != "unauthorized" {
				t.Errorf("want 401, got %d %s", resp.StatusCode, body)
			}
		})
	}
	if got := a.output(t, `ls`); got != "" {
		t.Errorf("a refused request ran: %q", got)
	}
	t.Run("replayed", func(t *testing.T) {
		once := a.signed(t, good())
		for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
			resp, body := a.send(t, once, http.MethodPost, "/v1/exec", "application/json", `{"command":"true"}`)
			if resp.StatusCode != want {
				t.Errorf("want %d, got %d %s", want, resp.StatusCode, body)
			}
		}
	})
	t.Run("unknown route tells strangers nothing", func(t *testing.T) {
		if resp, _ := a.send(t, "", http.MethodGet, "/v1/nothing", "", ""); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("want 401, got %d", resp.StatusCode)
		}
	})
	t.Run("the client sees it", func(t *testing.T) {
		other := a.pod
		other.UID = "pod-2"
		if _, err := a.client.Exec(t.Context(), other, client.ExecRequest{Command: "true"}, 0); !errors.Is(err, client.ErrUnauthorized) {
			t.Errorf("want ErrUnauthorized, got %v", err)
		}
	})
}

func TestSessionIsRequired(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{unbound: true})
	exec := func() error {
		_, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "touch ran"}, 0)
		return err
	}
	if err := exec(); !errors.Is(err, client.ErrSessionRequired) {
		t.Fatalf("want ErrSessionRequired, got %v", err)
	}
	if _, err := a.client.Export(t.Context(), a.pod, client.ExportRequest{Path: "x"}); !errors.Is(err, client.ErrSessionRequired) {
		t.Errorf("export: want ErrSessionRequired, got %v", err)
	}
	h, err := a.client.Health(t.Context(), a.pod)
	if diff := cmp.Diff(&client.Health{Status: "ok", Shell: "bash"}, h); err != nil || diff != "" {
		t.Errorf("health of an unbound agent: %v (-want +got):\n%s", err, diff)
	}
	session := client.Session{UID: "u", Env: []client.EnvVar{{Name: "GREETING", Value: "a 'b'\n$c"}}, Limits: client.Limits{CommandTimeoutMax: 1}}
	for range 2 { // idempotent
		if err := a.client.Bind(t.Context(), a.pod, session); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.client.Bind(t.Context(), a.pod, client.Session{UID: "v"}); !errors.Is(err, client.ErrSessionBound) {
		t.Errorf("want ErrSessionBound, got %v", err)
	}
	if got := a.output(t, `ls; printf %s "$GREETING"; sh -c 'printf %s "$GREETING"'`); got != "a 'b'\n$ca 'b'\n$c" {
		t.Errorf("the session's environment: got %q", got)
	}
	if r := a.exec(t, client.ExecRequest{Command: "sleep 20", Timeout: 30}); !r.TimedOut {
		t.Errorf("want the session's maximum of 1 s to hold, got %+v", r)
	}
}
