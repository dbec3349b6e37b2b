package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/sandbox-agent/background"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// askedProcesses starts nothing, and remembers what it was asked for.
type askedProcesses struct {
	started []wire.ProcessRequest
	queries []background.Query
	inputs  []wire.ProcessInput
	signals []unix.Signal
}

func (*askedProcesses) Activity() (int, time.Time) { return 0, time.Time{} }
func (*askedProcesses) List(context.Context) ([]wire.Process, error) {
	return nil, nil
}
func (*askedProcesses) Get(string) (wire.Process, error) { return wire.Process{}, nil }
func (f *askedProcesses) Start(_ context.Context, req wire.ProcessRequest) (wire.Process, bool, error) {
	f.started = append(f.started, req)
	return wire.Process{}, true, nil
}
func (f *askedProcesses) Output(_ context.Context, _ string, q background.Query) (wire.ProcessOutput, error) {
	f.queries = append(f.queries, q)
	return wire.ProcessOutput{}, nil
}
func (f *askedProcesses) Input(_ context.Context, _ string, in wire.ProcessInput) (int, error) {
	f.inputs = append(f.inputs, in)
	return 0, nil
}
func (*askedProcesses) Cancel(context.Context, string) error { return nil }

func (f *askedProcesses) Signal(_ context.Context, _ string, sig unix.Signal) error {
	f.signals = append(f.signals, sig)
	return nil
}

// FuzzProcesses: what is asked of background processes is within its bounds, or
// is refused.
func FuzzProcesses(f *testing.F) {
	server := servers(f)
	for _, seed := range [][3]string{
		{"POST", "/v1/processes", `{"command":"sleep 1","id":"a","terminal":{"rows":24,"cols":80}}`},
		{"POST", "/v1/processes", `{"command":"a","terminal":{"rows":-1}}`},
		{"POST", "/v1/processes", `{"command":"a\u0000","cwd":"/","env":[{"name":"BERTH_X","value":""}]}`},
		{"GET", "/v1/processes", ""},
		{"GET", "/v1/processes/a", ""},
		{"GET", "/v1/processes/../output?offset=-1", ""},
		{"GET", "/v1/processes/a/output?offset=0&limit=1&wait=0.5", ""},
		{"GET", "/v1/processes/a/output?offset=9223372036854775808&offset=1", ""},
		{"GET", "/v1/processes/a/output?wait=1e9&x", ""},
		{"POST", "/v1/processes/a/input", `{"data":"\ud800","eof":true,"terminal":{"rows":4096,"cols":4097}}`},
		{"POST", "/v1/processes/a/signal", `{"signal":"SIGTERM"}`},
		{"POST", "/v1/processes/a/signal", `{"signal":"0"}`},
		{"POST", "/v1/processes/a/signal", `{"signal":"-9"}`},
		{"DELETE", "/v1/processes/a", ""},
		{"POST", "/v1/processes/a/b/signal", `{"signal":"KILL"}`},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]))
	}
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		s, sh := server(anyone{})
		fake := &askedProcesses{}
		s.KeepProcesses(fake)
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(string(body)))
		r.Method, r.ContentLength = method, int64(len(body))
		r.Header.Set("Content-Type", contentJSON)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
		w := serve(t, s, sh, r)
		if asked := len(fake.started) + len(fake.queries) + len(fake.inputs) + len(fake.signals); asked > 1 || asked == 1 && w.Code >= 400 {
			t.Errorf("%d after %+v", w.Code, fake)
		}
		fake.check(t)
	})
}

// check holds what was asked against its bounds.
func (f *askedProcesses) check(t *testing.T) {
	t.Helper()
	for _, p := range f.started {
		if checkCommand(p.Command, p.ID, p.Cwd, p.Env) != nil || !within(p.Terminal) {
			t.Errorf("started %+v", p)
		}
	}
	for _, q := range f.queries {
		if q.Limit <= 0 || q.Limit > wire.MaxOutputChunk || q.Wait < 0 || q.Wait > wire.MaxOutputWait*time.Second {
			t.Errorf("asked for output by %+v", q)
		}
	}
	for _, in := range f.inputs {
		if !utf8.ValidString(in.Data) || !within(in.Terminal) {
			t.Errorf("input %+v", in)
		}
	}
	if slices.ContainsFunc(f.signals, func(sig unix.Signal) bool { return sig <= 0 || sig > 64 }) {
		t.Errorf("signals %v", f.signals)
	}
}

func within(t *wire.Terminal) bool {
	return t == nil || t.Rows >= 0 && t.Rows <= wire.MaxTerminal && t.Cols >= 0 && t.Cols <= wire.MaxTerminal
}
