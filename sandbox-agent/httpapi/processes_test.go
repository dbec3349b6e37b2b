package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// fakeProcesses notes what it is asked for.
type fakeProcesses struct {
	asked   []any
	created bool
	err     error
}

func (f *fakeProcesses) Activity() (int, time.Time) { return 0, time.Time{} }
func (f *fakeProcesses) Start(_ context.Context, req wire.ProcessRequest) (wire.Process, bool, error) {
	f.asked = append(f.asked, req)
	return wire.Process{ID: "a"}, f.created, f.err
}
func (f *fakeProcesses) List(context.Context) ([]wire.Process, error) {
	f.asked = append(f.asked, "list")
	return []wire.Process{}, f.err
}
func (f *fakeProcesses) Get(id string) (wire.Process, error) {
	f.asked = append(f.asked, "get "+id)
	return wire.Process{ID: id}, f.err
}
func (f *fakeProcesses) Output(_ context.Context, id string, q background.Query) (wire.ProcessOutput, error) {
	q.Room = nil // functions can't be compared
	f.asked = append(f.asked, "output "+id, q)
	return wire.ProcessOutput{}, f.err
}
func (f *fakeProcesses) Input(_ context.Context, id string, in wire.ProcessInput) (int, error) {
	f.asked = append(f.asked, "input "+id, in)
	return 0, f.err
}
func (f *fakeProcesses) Signal(_ context.Context, id string, sig unix.Signal) error {
	f.asked = append(f.asked, "signal "+id, sig)
	return f.err
}
func (f *fakeProcesses) Cancel(_ context.Context, id string) error {
	f.asked = append(f.asked, "cancel "+id)
	return f.err
}

func ask(t testing.TB, p *fakeProcesses, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	s, _ := fixture(t, anyone{})
	s.KeepProcesses(p)
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", contentJSON)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestProcessRoutes(t *testing.T) {
	t.Parallel()
	chunk := background.Query{Limit: wire.DefaultOutputChunk}
	for _, c := range []struct {
		method, target, body string
		want                 int
		asked                []any
	}{
		{"POST", "/v1/processes", `{"command":"a","id":"x","terminal":{"rows":4096}}`, 200, []any{wire.ProcessRequest{Command: "a", ID: "x", Terminal: &wire.Terminal{Rows: 4096}}}},
		{"POST", "/v1/processes", `{"command":""}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a\u0000"}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a","id":"x/y"}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a","cwd":"\u0000"}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a","env":[{"name":"BERTH_X"}]}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a","terminal":{"cols":4097}}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a","terminal":{"rows":-1}}`, 400, nil},
		{"POST", "/v1/processes", `{"command":"a","timeout":1}`, 400, nil},
		{"POST", "/v1/processes?x=1", `{"command":"a"}`, 400, nil},
		{"PUT", "/v1/processes", `{}`, 405, nil},
		{"GET", "/v1/processes", "", 200, []any{"list"}},
		{"GET", "/v1/processes", "{}", 400, nil},
		{"GET", "/v1/processes/output", "", 200, []any{"get output"}},
		{"GET", "/v1/processes/x?", "", 400, nil},
		{"DELETE", "/v1/processes/x", "", 204, []any{"cancel x"}},
		{"DELETE", "/v1/processes/x", "{}", 400, nil},
		{"DELETE", "/v1/processes/x?wait=1", "", 400, nil},
		{"GET", "/v1/processes/x/y", "", 404, nil},
		{"GET", "/v1/processes//output", "", 404, nil},
		{"GET", "/v1/processes/", "", 404, nil},
		{"GET", "/v1/processes/x/output", "", 200, []any{"output x", chunk}},
		{"GET", "/v1/processes/x/output?offset=-5&limit=1&wait=1.5", "", 200, []any{"output x", background.Query{Offset: -5, Limit: 1, Wait: 1500 * time.Millisecond}}},
		{"GET", "/v1/processes/x/output?limit=524288&wait=60", "", 200, []any{"output x", background.Query{Limit: wire.MaxOutputChunk, Wait: time.Minute}}},
		{"GET", "/v1/processes/x/output?limit=524289&wait=60.1", "", 200, []any{"output x", background.Query{Limit: wire.MaxOutputChunk, Wait: time.Minute}}},
		{"GET", "/v1/processes/x/output?limit=0&wait=0", "", 200, []any{"output x", chunk}},
		{"GET", "/v1/processes/x/output?", "", 400, nil},
		{"GET", "/v1/processes/x/output?offset=1&offset=1", "", 400, nil},
		{"POST", "/v1/processes/x/output", "{}", 405, nil},
		{"POST", "/v1/processes/x/input", `{"data":"é","eof":true,"terminal":{"rows":1,"cols":2}}`, 200, []any{"input x", wire.ProcessInput{Data: "é", EOF: true, Terminal: &wire.Terminal{Rows: 1, Cols: 2}}}},
		{"POST", "/v1/processes/x/input", `{}`, 400, nil},
		{"POST", "/v1/processes/x/input", `{"terminal":{"rows":4097}}`, 400, nil},
		{"POST", "/v1/processes/x/input?offset=1", `{"data":"x"}`, 400, nil},
		{"POST", "/v1/processes/x/signal", `{"signal":"TERM"}`, 204, []any{"signal x", unix.SIGTERM}},
		{"POST", "/v1/processes/x/signal", `{"signal":"0"}`, 400, nil},
		{"POST", "/v1/processes/x/signal", `{"signal":15}`, 400, nil},
	} {
		p := &fakeProcesses{}
		w := ask(t, p, c.method, c.target, c.body)
		if w.Code != c.want {
			t.Errorf("%s %s %s: want %d, got %d %s", c.method, c.target, c.body, c.want, w.Code, w.Body)
		}
		if diff := cmp.Diff(c.asked, p.asked); diff != "" {
			t.Errorf("%s %s %s (-want +asked):\n%s", c.method, c.target, c.body, diff)
		}
	}
	if w := ask(t, &fakeProcesses{created: true}, "POST", "/v1/processes", `{"command":"a"}`); w.Code != http.StatusCreated {
		t.Errorf("a new one: got %d", w.Code)
	}
}

func TestProcessRefusals(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct {
		status int
		code   string
	}{
		background.ErrTooMany:     {429, wire.CodeTooManyProcesses},
		background.ErrIDInUse:     {400, wire.CodeIDInUse},
		background.ErrNotFound:    {404, wire.CodeNotFound},
		background.ErrNotRunning:  {422, wire.CodeNotRunning},
		background.ErrInputClosed: {422, wire.CodeInputClosed},
		background.ErrNoTerminal:  {400, wire.CodeBadRequest},
		background.ErrJob:         {422, wire.CodeIsJob},
		background.ErrClosed:      {503, wire.CodeDraining},
		shell.ErrQueueFull:        {429, wire.CodeQueueFull},
		shell.ErrClosed:           {503, wire.CodeDraining},
		errors.New("fork"):        {500, wire.CodeInternal},
	} {
		for _, target := range []string{"GET /v1/processes", "GET /v1/processes/x", "GET /v1/processes/x/output", "POST /v1/processes", "POST /v1/processes/x/input", "POST /v1/processes/x/signal"} {
			method, path, _ := strings.Cut(target, " ")
			body := ""
			if method == "POST" {
				body = map[string]string{"/v1/processes": `{"command":"a"}`, "/v1/processes/x/input": `{"eof":true}`, "/v1/processes/x/signal": `{"signal":"9"}`}[path]
			}
			w := ask(t, &fakeProcesses{err: err}, method, path, body)
			var e wire.ErrorBody
			if jsonErr := json.Unmarshal(w.Body.Bytes(), &e); jsonErr != nil || w.Code != want.status || e.Error.Code != want.code {
				t.Errorf("%v of %s: want %+v, got %d %s", err, target, want, w.Code, w.Body)
			}
		}
	}
}

// FuzzOutputQuery: what is taken is within bounds, and means what a lenient
// reader would read too.
func FuzzOutputQuery(f *testing.F) {
	for _, s := range []string{"", "offset=1", "offset=-1&limit=2&wait=3", "offset=1&offset=1", "offset=%31", "wait=1e9", "wait=NaN", "limit=-1", "offset", "&", "offset=1;limit=2", "limit=999999999", "offset=999999999999999999", "wait=.5", "wait=5."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, ok := parseOutputQuery(raw)
		if !ok {
			return
		}
		if q.Limit < 1 || q.Limit > wire.MaxOutputChunk || q.Wait < 0 || q.Wait > wire.MaxOutputWait*time.Second {
			t.Errorf("%q became %+v", raw, q)
		}
		values, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("%q is no query: %v", raw, err)
		}
		for name, all := range values {
			if len(all) != 1 || name != wire.OutputOffset && name != wire.OutputLimit && name != wire.OutputWait {
				t.Errorf("%q was taken", raw)
			}
		}
	})
}
