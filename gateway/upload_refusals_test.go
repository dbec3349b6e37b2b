package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestUploadIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = role
	s := newStack(t, api, nil)
	const good = "/sessions/s/files?name=secret"
	for name, c := range map[string]struct {
		path, token string
		header      map[string]string
		status      int
		code        string
	}{
		"no token":       {good, "", nil, 401, "unauthenticated"},
		"no right":       {"/sessions/forbidden/files?name=secret", "alice", nil, 403, "forbidden"},
		"bad session":    {"/sessions/A_B/files?name=a", "alice", nil, 400, "invalid_session_id"},
		"slash in it":    {"/sessions/a%2Fb/files?name=a", "alice", nil, 400, "invalid_session_id"},
		"no name":        {"/sessions/s/files", "alice", nil, 400, "bad_request"},
		"empty name":     {"/sessions/s/files?name=", "alice", nil, 400, "bad_request"},
		"two names":      {good + "&name=b", "alice", nil, 400, "bad_request"},
		"more":           {good + "&overwrite=true", "alice", nil, 400, "bad_request"},
		"bad escape":     {"/sessions/s/files?name=%zz", "alice", nil, 400, "bad_request"},
		"a long name":    {"/sessions/s/files?name=" + strings.Repeat("a", 4097), "alice", nil, 400, "bad_request"},
		"a form":         {good, "alice", map[string]string{"Content-Type": "multipart/form-data; boundary=x"}, 415, "unsupported_media"},
		"an encoding":    {good, "alice", map[string]string{"Content-Encoding": "gzip"}, 415, "unsupported_media"},
		"a foreign host": {good, "alice", map[string]string{"Origin": "https://evil.example"}, 403, "origin_not_allowed"},
	} {
		resp, answer := s.do(http.MethodPost, c.path, c.token, strings.NewReader("data"), func(r *http.Request) {
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
		})
		if resp.StatusCode != c.status || !strings.Contains(answer, `"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", name, resp.StatusCode, answer, c.status, c.code)
		}
	}
	if creates, _, _, _ := api.counts(); creates != 0 {
		t.Errorf("%d Sandboxes were made", creates)
	}
	if strings.Contains(s.log.String(), "secret") {
		t.Error("a name is in the log")
	}
	resp, _ := s.do(http.MethodGet, "/sessions/s/files", "alice", nil, nil)
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}

// What an agent answers is passed on with its status; what isn't its answer is 502.
func TestUploadPassesTheAgentsStatusOn(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	for code, want := range map[string]struct {
		status, passed int
		code           string
	}{
		"bad_request":       {400, 400, "bad_request"},
		"outside_workspace": {403, 403, "outside_workspace"},
		"forbidden":         {403, 403, "forbidden"},
		"stalled":           {408, 408, "stalled"},
		"name_taken":        {409, 409, "name_taken"},
		"too_large":         {413, 413, "too_large"},
		"internal":          {500, 500, "internal"},
		"no_space":          {507, 507, "no_space"},
		"unauthorized":      {401, 502, "bad_gateway"},
		"made_up":           {418, 502, "bad_gateway"},
	} {
		l.agent.upload = func(w http.ResponseWriter, _ *http.Request) { agentError(w, want.status, code, "because") }
		status, _, answer := l.upload("alice", "s", "a", []byte("data"))
		if status != want.passed || !strings.Contains(answer, `"code":"`+want.code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", code, status, answer, want.passed, want.code)
		}
	}
	l.agent.upload = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	if status, _, answer := l.upload("alice", "s", "a", []byte("data")); status != http.StatusBadGateway {
		t.Errorf("a connection that broke: %d %s", status, answer)
	}
	l.agent.upload = func(w http.ResponseWriter, _ *http.Request) { took(w, "a", 17) }
	if status, _, answer := l.upload("alice", "s", "a", []byte("data")); status != http.StatusBadGateway {
		t.Errorf("a lie: %d %s", status, answer)
	}
}

// An agent's refusal reaches a client that still sends, announced or not.
func TestUploadThatIsRefusedOnItsWay(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.agent.upload = func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.CopyN(io.Discard, r.Body, 1<<20); err != nil {
			t.Error(err)
		}
		agentError(w, http.StatusInsufficientStorage, "no_space", "no space is left")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 64<<20)) // its caller gives up
	}
	data := make([]byte, 32<<20)
	for range 10 {
		for _, body := range []io.Reader{bytes.NewReader(data), io.MultiReader(bytes.NewReader(data))} {
			resp, answer := l.do(http.MethodPost, "/sessions/s/files?name=a", "alice", body, nil)
			if resp.StatusCode != http.StatusInsufficientStorage {
				t.Fatalf("%d %s, want 507", resp.StatusCode, answer)
			}
		}
	}
}
