package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/session"
)

func TestIDIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"t-" + strings.Repeat("0f", 16), "p-0123456789abcdef"} {
		id := ID{Key: session.Key{Namespace: "team-a", Name: "s"}, Name: name, Pod: Mark("uid"), Created: 1_800_000_000}
		got, err := ParseID(id.String())
		if err != nil || got != id || got.IsProcess() != (name[0] == 'p') || got.Began().Unix() != id.Created {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

func TestWhatIsNoIDIsRefused(t *testing.T) {
	t.Parallel()
	const process = "p-0123456789abcdef"
	for _, s := range []string{
		"", "a", "a.b." + process + ".00000000", "a.b." + process + ".00000000.1.x", "A.b." + process + ".00000000.1",
		"a..p-0123456789abcdef.00000000.1", "a.b.p-0123456789abcde.00000000.1", "a.b.p-0123456789abcdeF.00000000.1",
		"a.b.t-0123456789abcdef.00000000.1", "a.b.../../x.00000000.1", "a.b." + process + ".0000000.1",
		"a.b." + process + ".00000000.0", "a.b." + process + ".00000000.01", "a.b." + process + ".00000000.-1",
		"a.b." + process + ".00000000.1234567890123", "a.b." + process + ".00000000.1\n",
	} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("%q: %+v", s, id)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("a.b.p-0123456789abcdef.00000000.1")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseID(s); err == nil && id.String() != s {
			t.Errorf("%q is %q", s, id)
		}
	})
}

// meta is that of a request of a client with these extensions.
func meta(t *testing.T, version, extensions string) (m map[string]any) {
	t.Helper()
	text := `{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{"extensions":` + extensions + `}}`
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheExtensionIsDeclaredInTheRequestAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meta map[string]any
		want bool
	}{
		"declared":      {meta(t, "2026-07-28", `{"io.modelcontextprotocol/tasks":{}}`), true},
		"another":       {meta(t, "2026-07-28", `{"io.modelcontextprotocol/ui":{}}`), false},
		"none":          {meta(t, "2026-07-28", `null`), false},
		"older version": {meta(t, "2025-11-25", `{"io.modelcontextprotocol/tasks":{}}`), false},
		"nothing":       {nil, false},
		"nonsense":      {map[string]any{mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeyClientCapabilities: 1}, false},
	} {
		if got := Declared(c.meta); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTasksOnTheWire: the fields of the schema, and no others.
func TestTasksOnTheWire(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 1, 2, 3, 4_000_000, time.FixedZone("", 3600))
	task := Task{ID: "a", Status: Working, Created: Time{at}, Updated: Time{at}, PollInterval: PollInterval.Milliseconds()}
	const times = `"createdAt":"2026-12-01T00:02:03.004Z","lastUpdatedAt":"2026-12-01T00:02:03.004Z"`
	wire(t, "working", GetResult{ResultType: resultComplete, Task: task},
		`{"resultType":"complete","taskId":"a","status":"working",`+times+`,"ttlMs":null,"pollIntervalMs":2000}`)

	failed := task
	failed.Fail("no")
	failed.PollInterval = 0
	failed.Keep(at, time.Second)
	wire(t, "failed", CreateResult{ResultType: resultTask, Task: failed},
		`{"resultType":"task","taskId":"a","status":"failed","statusMessage":"no",`+times+`,"ttlMs":1000,"error":{"code":-32603,"message":"no"}}`)

	done := task
	done.Status, done.Result = Completed, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "x"}}, IsError: true}
	wire(t, "completed", GetResult{ResultType: resultComplete, Task: done},
		`{"resultType":"complete","taskId":"a","status":"completed",`+times+`,"ttlMs":null,"pollIntervalMs":2000,"result":{"content":[{"type":"text","text":"x"}],"isError":true}}`)
}

func wire(t *testing.T, name string, v any, want string) {
	t.Helper()
	got, err := json.Marshal(v)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
	}
}

func TestFinalStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[Status]bool{Working: false, InputRequired: false, Completed: true, Cancelled: true, Failed: true} {
		if status.Final() != want {
			t.Errorf("%s: final %v", status, !want)
		}
	}
}

// TestOnlyWhoDeclaresTheExtensionGetsATask, and who does gets a result all the same
// if the handler takes no task.
func TestOnlyWhoDeclaresTheExtensionGetsATask(t *testing.T) {
	t.Parallel()
	plain := &mcp.CallToolResult{}
	for name, c := range map[string]struct {
		extensions  string
		take, tasks bool
	}{
		"declared":     {`{"io.modelcontextprotocol/tasks":{}}`, true, true},
		"not taken":    {`{"io.modelcontextprotocol/tasks":{}}`, false, false},
		"not declared": {`{}`, true, false},
	} {
		handler := Middleware(func(ctx context.Context, _ string, _ mcp.Request) (mcp.Result, error) {
			if o := OfferOf(ctx); o != nil && c.take {
				return o.Take(Task{ID: "a", Result: plain, Error: &Error{}}), nil
			}
			return plain, nil
		})
		req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: meta(t, "2026-07-28", c.extensions)}}
		result, err := handler(t.Context(), "tools/call", req)
		created, ok := result.(*CreateResult)
		if err != nil || ok != c.tasks || ok && (created.ID != "a" || created.Result != nil || created.Error != nil) {
			t.Errorf("%s: %T %+v, %v", name, result, result, err)
		}
	}
}

func TestMethodsOfTheExtensionNeedIt(t *testing.T) {
	t.Parallel()
	handler := Middleware(func(context.Context, string, mcp.Request) (mcp.Result, error) { return &Acknowledgement{}, nil })
	for _, method := range []string{MethodGet, MethodUpdate, MethodCancel} {
		for extensions, want := range map[string]int64{`{}`: -32021, `{"io.modelcontextprotocol/tasks":{}}`: 0} {
			p := &params{ID: "a"}
			p.SetMeta(meta(t, "2026-07-28", extensions))
			_, err := handler(t.Context(), method, &mcp.ServerRequest[*params]{Params: p})
			var got *jsonrpc.Error
			ok := errors.As(err, &got)
			switch {
			case want == 0 && err != nil, want != 0 && (!ok || got.Code != want):
				t.Errorf("%s with %s: %v", method, extensions, err)
			case ok && string(got.Data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`:
				t.Errorf("%s: data %s", method, got.Data)
			}
		}
		if _, err := handler(t.Context(), method, &mcp.ServerRequest[*params]{}); err == nil {
			t.Errorf("%s without params was served", method)
		}
	}
}
