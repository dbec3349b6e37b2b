package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/sandbox-agent/token"
)

// keyID is the kid of the key that newAgent makes.
const keyID = "key-0001"

// raw sends one request with a good token, whatever else it is.
func (a *agent) raw(t testing.TB, method, path, contentType, body string) (*http.Response, string) {
	t.Helper()
	bare, _, _ := strings.Cut(path, "?")
	return a.send(t, a.token(t, method, bare), method, path, contentType, body)
}

func (a *agent) token(t testing.TB, method, path string) string {
	t.Helper()
	return a.signed(t, token.NewClaims(token.Audience(a.pod.Namespace, a.pod.UID), method, path, time.Now()))
}

func (a *agent) signed(t testing.TB, c token.Claims) string {
	t.Helper()
	compact, err := token.Sign(c, keyID, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

func (a *agent) send(t testing.TB, bearer, method, path, contentType, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

func errorCode(t testing.TB, body string) string {
	t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == "" {
		t.Fatalf("want a JSON error, got %q", body)
	}
	return e.Error.Code
}

func TestStrictHTTP(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	const js = "application/json"
	mega := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		method, path, kind, body string
		status                   int
		code                     string
	}{
		"trailing data":            {"POST", "/v1/exec", js, `{"command":"true"}{}`, 400, "bad_request"},
		"two empty objects":        {"POST", "/v1/exec", js, `{}{}`, 400, "bad_request"},
		"unknown field":            {"POST", "/v1/exec", js, `{"command":"true","sesion":"x"}`, 400, "bad_request"},
		"not an object":            {"POST", "/v1/exec", js, `"true"`, 400, "bad_request"},
		"no body":                  {"POST", "/v1/exec", js, ``, 400, "bad_request"},
		"half a body":              {"POST", "/v1/exec", js, `{"command":"tr`, 400, "bad_request"},
		"empty command":            {"POST", "/v1/exec", js, `{"command":""}`, 400, "bad_request"},
		"command with NUL":         {"POST", "/v1/exec", js, `{"command":"a\u0000b"}`, 400, "bad_request"},
		"timeout as text":          {"POST", "/v1/exec", js, `{"command":"true","timeout":"60"}`, 400, "bad_request"},
		"bad id":                   {"POST", "/v1/exec", js, `{"command":"true","id":"a/b"}`, 400, "bad_request"},
		"agent's variable":         {"POST", "/v1/exec", js, `{"command":"true","env":[{"name":"BERTH_X","value":""}]}`, 400, "bad_request"},
		"bad variable name":        {"POST", "/v1/exec", js, `{"command":"true","env":[{"name":"a-b","value":""}]}`, 400, "bad_request"},
		"no content type":          {"POST", "/v1/exec", "", `{"command":"true"}`, 415, "unsupported_media"},
		"form":                     {"POST", "/v1/exec", "application/x-www-form-urlencoded", `command=true`, 415, "unsupported_media"},
		"body over 1 MiB":          {"POST", "/v1/exec", js, `{"command":"` + mega + `"}`, 413, "too_large"},
		"query":                    {"POST", "/v1/exec?x=1", js, `{"command":"true"}`, 400, "bad_request"},
		"GET exec":                 {"GET", "/v1/exec", "", "", 405, "method_not_allowed"},
		"POST health":              {"POST", "/v1/health", "", "", 405, "method_not_allowed"},
		"HEAD artifact":            {"PUT", "/v1/artifacts/" + strings.Repeat("0", 32), "", "", 405, "method_not_allowed"},
		"unknown route":            {"GET", "/v1/nothing", "", "", 404, "not_found"},
		"root":                     {"GET", "/", "", "", 404, "not_found"},
		"trailing slash":           {"POST", "/v1/exec/", js, `{"command":"true"}`, 404, "not_found"},
		"deeper path":              {"DELETE", "/v1/exec/a/b", "", "", 404, "not_found"},
		"dot segments":             {"POST", "/v1/x/../exec", js, `{"command":"true"}`, 404, "not_found"},
		"cancel of nothing":        {"DELETE", "/v1/exec/none", "", "", 404, "not_found"},
		"cancel with a body":       {"DELETE", "/v1/exec/none", "", "x", 400, "bad_request"},
		"artifact that is not":     {"GET", "/v1/artifacts/" + strings.Repeat("0", 32), "", "", 404, "not_found"},
		"artifact of a bad name":   {"GET", "/v1/artifacts/x", "", "", 404, "not_found"},
		"session without uid":      {"PUT", "/v1/session", js, `{"limits":{}}`, 400, "bad_request"},
		"session of another":       {"PUT", "/v1/session", js, `{"uid":"sandbox-2","limits":{}}`, 409, "session_bound"},
		"session negative limit":   {"PUT", "/v1/session", js, `{"uid":"sandbox-1","limits":{"output_bytes":-1}}`, 400, "bad_request"},
		"session default over max": {"PUT", "/v1/session", js, `{"uid":"sandbox-1","limits":{"command_timeout_default":9,"command_timeout_max":5}}`, 400, "bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := a.raw(t, c.method, c.path, c.kind, c.body)
			if resp.StatusCode != c.status || errorCode(t, body) != c.code {
				t.Errorf("want %d %s, got %d %s", c.status, c.code, resp.StatusCode, body)
			}
			if kind := resp.Header.Get("Content-Type"); kind != js {
				t.Errorf("want an error as JSON, got %q", kind)
			}
			if allow := resp.Header.Get("Allow"); (c.status == 405) != (allow != "") {
				t.Errorf("Allow is %q with status %d", allow, c.status)
			}
		})
	}
}

func TestChunkedBodyOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	body := io.MultiReader(strings.NewReader(`{"command":"`), io.LimitReader(zeros{}, 2<<20))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/v1/exec", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.token(t, http.MethodPost, "/v1/exec"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("want 413, got %d", resp.StatusCode)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("0"), len(p))), nil }

func TestEnvironment(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{
		environ:   []string{"PATH=/usr/bin:/bin", "HOME=/nowhere", "FROM_IMAGE=1", "BERTH_SECRET=x"},
		sandboxed: []client.EnvVar{{Name: "FROM_SESSION", Value: "2"}, {Name: "HOME", Value: "/workspace"}},
	})
	const shown = `env -0 | tr '\0' '\n' | grep -vE '^(_|PWD|OLDPWD|SHLVL)=' | sort`
	if diff := cmp.Diff("FROM_IMAGE=1\nFROM_SESSION=2\nHOME=/workspace\nPATH=/usr/bin:/bin\n", a.output(t, shown)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	a.exec(t, client.ExecRequest{Command: "kill -9 -1; kill -9 $BASHPID"}) // a new shell has it too
	if diff := cmp.Diff("FROM_IMAGE=1\nFROM_SESSION=2\nHOME=/workspace\nPATH=/usr/bin:/bin\n", a.exec(t, client.ExecRequest{Command: shown}).Stdout); diff != "" {
		t.Errorf("environment of the next shell (-want +got):\n%s", diff)
	}
}

func TestCwdAndEnvOfARequest(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	r := a.exec(t, client.ExecRequest{Command: `pwd; echo "$A|$B"`, Cwd: "/etc", Env: []client.EnvVar{{Name: "A", Value: "x y"}, {Name: "B", Value: "$HOME`id`"}}})
	if want := "/etc\nx y|$HOME`id`\n"; r.Stdout != want || r.ExitCode != 0 {
		t.Errorf("want %q, got %+v", want, r)
	}
	if r := a.exec(t, client.ExecRequest{Command: `echo ran`, Cwd: "/no/such"}); r.ExitCode != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, "/no/such") {
		t.Errorf("want exit code 1 and nothing run, got %+v", r)
	}
	if got := a.output(t, "pwd"); got != "/etc\n" {
		t.Errorf("want the directory to persist as after cd, got %q", got)
	}
}

// hold runs a command that ends when release is called.
func (a *agent) hold(t *testing.T, id string) (release func(), result chan *client.ExecResult) {
	t.Helper()
	a.output(t, `rm -f held go; mkfifo held go`)
	result = make(chan *client.ExecResult, 1)
	go func() {
		r, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: `echo > held; read < go; echo released`, ID: id}, 0)
		if err != nil {
			t.Errorf("held command: %v", err)
		}
		result <- r
	}()
	a.fifo(t, "held", false)
	return func() { a.fifo(t, "go", true) }, result
}

func TestHealthWhateverRuns(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, result := a.hold(t, "")
	for range 20 {
		began := time.Now()
		if _, err := a.client.Health(t.Context(), a.pod); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > time.Second { // 100 ms on a machine that does nothing else
			t.Errorf("health took %v", d)
		}
	}
	release()
	<-result
}

// TestQueueIsBounded: of 65 commands behind a running one, one is refused.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	release, held := a.hold(t, "")
	refused := make(chan error, 65)
	var wg sync.WaitGroup
	for range 65 {
		wg.Go(func() {
			r, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "echo >> ran"}, 0)
			if err != nil {
				refused <- err
			} else if r.ExitCode != 0 {
				t.Errorf("queued command: %+v", r)
			}
		})
	}
	err := <-refused
	var refusal *client.Error
	if !errors.As(err, &refusal) || !errors.Is(err, client.ErrQueueFull) || refusal.RetryAfter <= 0 || refusal.Status != 429 {
		t.Errorf("want 429 with Retry-After, got %v", err)
	}
	release()
	wg.Wait()
	<-held
	if len(refused) != 0 {
		t.Errorf("want one to be refused, got another: %v", <-refused)
	}
	if got := a.output(t, "wc -l < ran"); got != "64\n" {
		t.Errorf("want 64 to run, got %s", got)
	}
}

func TestClockStartsWithTheCommand(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkfifo held")
	first := make(chan struct{})
	go func() {
		defer close(first)
		if _, err := a.client.Exec(t.Context(), a.pod, client.ExecRequest{Command: "echo > held; sleep 1"}, 0); err != nil {
			t.Error(err)
		}
	}()
	a.fifo(t, "held", false)
	if r := a.exec(t, client.ExecRequest{Command: "sleep 0.2", Timeout: 0.7}); r.TimedOut || r.DurationMS > 700 {
		t.Errorf("want a queued command's clock to start with it, got %+v", r)
	}
	<-first
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/health HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", strings.Repeat("x", 64<<10))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("want 431 for a header of 64 KiB, got %v, %v", resp, err)
	}
}
