package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// progressBody is a tools/call of bash that carries a progress token.
func progressBody(era, token, command string) string {
	meta := fmt.Sprintf(`"progressToken":%s`, token)
	if era >= "2026-07-28" {
		meta += `,"io.modelcontextprotocol/protocolVersion":"` + era + `","io.modelcontextprotocol/clientCapabilities":{}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":%q},"_meta":{%s}}}`, command, meta)
}

// begin sends a call of bash and returns once its response has begun.
func (l *live) begin(ctx context.Context, era, body string) *http.Response {
	l.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/mcp", strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	r.Header.Set("X-Request-ID", "r-1")
	toolHeaders(era, "s")(r)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// event is a message of an event stream.
type event struct {
	Method string
	Params struct {
		ProgressToken any
		Progress      float64
		Message       string
	}
	Result *struct {
		IsError           bool
		StructuredContent object
		Content           []struct{ Text string }
	}
	Error any
}

// events reads the messages of an event stream one by one.
type events struct {
	t     *testing.T
	lines *bufio.Reader
	// comments counts those in between.
	comments int
}

// next returns the next message; ok is false at the end.
func (e *events) next() (m event, ok bool) {
	e.t.Helper()
	for {
		line, err := e.lines.ReadString('\n')
		if err == io.EOF && line == "" {
			return event{}, false
		}
		if err != nil {
			e.t.Fatalf("read event: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case line == ": keep-alive":
			e.comments++
		case isData:
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				e.t.Fatalf("event %.200q: %v", data, err)
			}
			return m, true
		case line != "" && line != "event: message":
			e.t.Fatalf("%.200q in an event stream", line)
		}
	}
}

// Output reaches the client while its command runs, and the result is that of a
// call without token.
func TestProgressCarriesOutputAsItHappens(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		heard := make(chan string, 1)
		want := client.ExecResult{Stdout: "out 漢\x1b\nmore\n", Stderr: "err\xff", ExitCode: 3, DurationMS: 5, StdoutBytes: 14, StderrBytes: 4}
		l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
			for _, piece := range []struct {
				write func(string)
				text  string
				told  string
			}{{f.stdout, "out \xe6\xbc", "out "}, {f.stdout, "\xa2\x1b\n", "漢\x1b\n"}, {f.stderr, "err\xff", "err\ufffd"}, {f.stdout, "more\n", "more\n"}} {
				piece.write(piece.text)
				if told := <-heard; told != piece.told {
					t.Errorf("told %q, want %q", told, piece.told)
				}
			}
			f.result(want)
		}
		l.agent.exec = func(w http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
			if accept := r.Header.Get("Accept"); accept != "" {
				t.Errorf("a call without token asked the agent for %q", accept)
			}
			agentJSON(w, want)
		}
		stream := events{t: t, lines: bufio.NewReader(l.begin(t.Context(), era, progressBody(era, `"t"`, "x")).Body)}
		last := 0.
		var result *event
		for m, ok := stream.next(); ok; m, ok = stream.next() {
			if result != nil {
				t.Errorf("%+v after the result", m)
			}
			if m.Method == "" {
				result = &m
				continue
			}
			if m.Method != "notifications/progress" || m.Params.ProgressToken != "t" || m.Params.Progress <= last {
				t.Errorf("event %+v after progress %v", m, last)
			}
			last = m.Params.Progress
			heard <- m.Params.Message
		}
		if last != 18 {
			t.Errorf("progress ended at %v, want the 18 bytes that were written", last)
		}
		without := bash(t, l.client(era), "x")
		if result == nil || result.Result == nil || !result.Result.IsError {
			t.Fatalf("result %+v, want that of exit code 3", result)
		}
		if diff := cmp.Diff(without.StructuredContent, any(result.Result.StructuredContent)); diff != "" {
			t.Errorf("result (-without token +with):\n%s", diff)
		}
	})
}

// The SDK's own client hears it.
func TestClientHearsProgress(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		heard := make(chan *mcp.ProgressNotificationParams, 10)
		l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
			f.stdout("hello\n")
			m := <-heard
			if m.Message != "hello\n" || m.Progress != 6 || m.ProgressToken != "token" {
				t.Errorf("heard %+v", m)
			}
			f.result(client.ExecResult{Stdout: "hello\n", StdoutBytes: 6})
		}
		c := l.connectWithOptions(era, http.Header{"Authorization": {"Bearer alice"}, "X-Session-Id": {"s"}}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params },
		})
		params := &mcp.CallToolParams{Name: "bash", Arguments: object{"command": "echo hello"}}
		params.SetProgressToken("token")
		result, err := c.CallTool(t.Context(), params)
		if err != nil || structured(t, result)["stdout"] != "hello\n" {
			t.Errorf("result %+v, %v", result, err)
		}
	})
}

// A token goes back as it came, or isn't used at all.
func TestProgressTokens(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	for token, want := range map[string]any{
		`"a"`: "a", `""`: "", `7`: 7., `0`: 0., `-1`: -1., `9007199254740991`: float64(1<<53 - 1),
		`9007199254740993`: nil, `1.5`: nil, `null`: nil, `true`: nil, `{}`: nil, `["a"]`: nil, `1e300`: nil,
	} {
		told := make(chan struct{})
		l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
			f.stdout("x")
			<-told
			f.result(client.ExecResult{Stdout: "x", StdoutBytes: 1})
		}
		stream := events{t: t, lines: bufio.NewReader(l.begin(t.Context(), eras[0], progressBody(eras[0], token, "x")).Body)}
		m, _ := stream.next()
		if want != nil {
			if m.Params.ProgressToken != want {
				t.Errorf("token %s came back as %v", token, m.Params.ProgressToken)
			}
			close(told)
			m, _ = stream.next()
		}
		if m.Result == nil || m.Result.IsError {
			t.Errorf("token %s: %+v, want a result", token, m)
		}
	}
}

// R21: a client that has gone, or has cancelled, takes its command along, also
// while it is told of output.
func TestClientGoneWhileItIsTold(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		ended := make(chan struct{})
		l.agent.stream = func(f frames, r *http.Request, _ client.ExecRequest) {
			defer close(ended)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Errorf("read body: %v", err)
			}
			for r.Context().Err() == nil {
				f.stdout(strings.Repeat("x", 64<<10))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		stream := events{t: t, lines: bufio.NewReader(l.begin(ctx, era, progressBody(era, "1", "yes")).Body)}
		for range 3 {
			if m, ok := stream.next(); !ok || len(m.Params.Message) > 8<<10 {
				t.Errorf("event of %d bytes, %v", len(m.Params.Message), ok)
			}
		}
		cancel()
		<-ended
	})
}

// R21: comments keep a call alive that was told of output and then is silent.
func TestProgressAndKeepAlive(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		api := newAPI(t)
		fa := newAgent(t, "pod-1")
		sandbox := readyOn(newSandbox("s", "alice"), fa)
		api.put(t, sandbox)
		l := &live{newStack(t, api, func(o *gateway.Options) { o.FlushAfter, o.KeepAlive = time.Millisecond, time.Millisecond }), fa, sandbox}
		pieces := make(chan string)
		fa.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
			total := int64(0)
			for piece := range pieces {
				f.stdout(piece)
				total += int64(len(piece))
			}
			f.result(client.ExecResult{Stdout: "all", StdoutBytes: total})
		}
		stream := events{t: t, lines: bufio.NewReader(l.begin(t.Context(), era, progressBody(era, "1", "x")).Body)}
		for i := range 5 {
			pieces <- strings.Repeat("\n\ndata: :", i+1) // what an event stream must not take for its own
			if m, _ := stream.next(); m.Params.Message != strings.Repeat("\n\ndata: :", i+1) {
				t.Errorf("told %q", m.Params.Message)
			}
		}
		close(pieces)
		if m, _ := stream.next(); m.Result == nil || m.Result.StructuredContent["stdout"] != "all" {
			t.Errorf("%+v, want the result", m)
		}
		if stream.comments == 0 {
			t.Error("no comments")
		}
	})
}
