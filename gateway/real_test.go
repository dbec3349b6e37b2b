package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

func TestMain(m *testing.M) { os.Exit(localagent.Main(m)) }

// newReal is a gateway with one ready session of alice's on a real agent, whose
// workspace is the directory that it returns.
func newReal(t testing.TB) (l *live, workspace string) {
	t.Helper()
	return newRealWithin(t, agent.Limits{})
}

func newRealWithin(t testing.TB, limits agent.Limits) (l *live, workspace string) {
	t.Helper()
	return newRealWith(t, localagent.Options{Limits: limits})
}

// newRealWith is newReal of an agent with these options.
func newRealWith(t testing.TB, options localagent.Options) (l *live, workspace string) {
	t.Helper()
	l, workspace, _ = newRealAgent(t, options)
	return l, workspace
}

// newRealAgent is newRealWith, and gives the agent.
func newRealAgent(t testing.TB, options localagent.Options) (l *live, workspace string, a *localagent.Agent) {
	t.Helper()
	if options.Workspace == "" {
		options.Workspace = t.TempDir()
	}
	workspace, options.Environ = options.Workspace, []string{"PATH=/usr/bin:/bin"}
	a, err := localagent.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	return newLiveOn(t, a.Pod, a.Key, a.Port), workspace, a
}

// newLiveOn is a gateway with one ready session of alice's on an agent that is not
// a fake one.
func newLiveOn(t testing.TB, pod agent.Pod, key []byte, port int) *live {
	t.Helper()
	api := newAPI(t)
	setSigningKey(t, api, key)
	sandbox := readyOn(newSandbox("s", "alice"), &fakeAgent{audience: pod.Namespace + "/" + pod.UID, ip: pod.IP.String()})
	sandbox.Status.KeyID = localagent.KeyID
	api.put(t, sandbox)
	return &live{stack: newStackFor(t, api, agent.Options{Port: port, AllowLoopback: true}, nil), sandbox: sandbox}
}

// setSigningKey makes key the only one that the gateway signs with.
func setSigningKey(t testing.TB, api *fakeAPI, key []byte) {
	o := defaults()
	var secret corev1.Secret
	err := api.inner.Get(t.Context(), client.ObjectKey{Namespace: o.KeyNamespace, Name: o.KeyName}, &secret)
	if err == nil {
		secret.Data = map[string][]byte{localagent.KeyID + ".pem": key}
		err = api.inner.Update(t.Context(), &secret)
	}
	if err != nil {
		t.Fatalf("set the signing key: %v", err)
	}
}

// With the agent as it is shipped: output is told while its command runs, which
// ends with its caller; a long output is a log that is read in parts; background
// processes are started, fed, read, signalled and listed.
func TestRealAgent(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	t.Run("progress", func(t *testing.T) {
		for _, era := range eras {
			told := filepath.Join(workspace, "told")
			command := "echo one >&2; until [ -e told ]; do sleep 0.01; done; rm told; echo two; exit 3"
			stream := events{t: t, lines: bufio.NewReader(l.begin(t.Context(), era, progressBody(era, `"t"`, command)).Body)}
			m, _ := stream.next()
			if m.Params.Message != "one\n" || m.Params.Progress != 4 {
				t.Fatalf("%s: first event %+v, want progress 4, one", era, m)
			}
			if err := os.WriteFile(told, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			var last event
			for m, ok := stream.next(); ok; m, ok = stream.next() {
				last = m
			}
			if r := last.Result; r == nil || !r.IsError || r.StructuredContent["stdout"] != "two\n" || r.StructuredContent["stderr"] != "one\n" || r.StructuredContent["exit_code"] != 3. {
				t.Errorf("%s: last event %+v, want the whole result", era, last)
			}
		}
	})
	t.Run("caller gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stream := events{t: t, lines: bufio.NewReader(l.begin(ctx, eras[1], progressBody(eras[1], "1", "echo begun; kept=yes; sleep 1000; touch over")).Body)}
		if m, _ := stream.next(); m.Params.Message != "begun\n" {
			t.Fatalf("event %+v, want begun", m)
		}
		cancel()
		// The next command waits for its end, and finds the shell as it was before.
		out := structured(t, bash(t, l.client(eras[1]), `echo "[$kept]"; [ ! -e over ]`))
		if out["stdout"] != "[]\n" {
			t.Errorf("next command: %v", out)
		}
	})
	t.Run("log", func(t *testing.T) { realLog(t, l) })
	t.Run("background", func(t *testing.T) { realProcesses(t, l) })
}

func realLog(t *testing.T, l *live) {
	c := l.client(eras[1])
	var whole bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintln(&whole, i+1)
	}
	out := structured(t, bash(t, c, "seq 200000"))
	uri, _ := out["log_uri"].(string)
	if out["truncated"] != true || uri == "" || out["stderr_log_uri"] != nil {
		t.Fatalf("result %.300v, want a log of stdout alone", out)
	}
	var read []byte
	for len(read) < whole.Len() {
		const part = 500_000
		result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("%s?offset=%d&length=%d", uri, len(read), part)})
		if err != nil {
			t.Fatal(err)
		}
		text := result.Contents[0].Text
		if len(text) != min(part, whole.Len()-len(read)) {
			t.Fatalf("%d bytes at %d", len(text), len(read))
		}
		read = append(read, text...)
	}
	if !bytes.Equal(read, whole.Bytes()) {
		t.Error("the log is not what was written")
	}
	result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || result.Contents[0].Text != whole.String() || !strings.HasPrefix(result.Contents[0].MIMEType, "text/plain") {
		t.Errorf("read at once: %v", err)
	}
}

// readUntil reads a process's output from the beginning until it holds want, or
// for no want until the process has ended, and returns the last answer.
func readUntil(t *testing.T, c *mcp.ClientSession, id, want string) object {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all strings.Builder
	for offset := 0.; ; {
		r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "process_output", Arguments: object{"process_id": id, "offset": offset, "wait": 10}})
		if err != nil {
			t.Fatalf("%v: %q so far, want %q", err, all.String(), want)
		}
		o := structured(t, r)
		all.WriteString(o["output"].(string))
		offset = o["next_offset"].(float64)
		ended := o["running"] == false
		if want != "" && strings.Contains(all.String(), want) || want == "" && ended {
			return o
		}
		if ended && o["output"] == "" {
			t.Fatalf("output %q, want %q", all.String(), want)
		}
	}
}

func realProcesses(t *testing.T, l *live) {
	c := l.client(eras[0])
	if r := bash(t, c, "mkdir -p d && cd d && export GREETING=hello"); r.IsError {
		t.Fatal(text(t, r))
	}
	cat := inBackground(t, c, `echo "$GREETING from ${PWD##*/}"; cat; exit 5`)
	readUntil(t, c, cat, "hello from d\n")
	if got := structured(t, call(t, c, "process_input", object{"process_id": cat, "input": "typed\n"})); got["written"] != 6. {
		t.Errorf("input gave %v", got)
	}
	readUntil(t, c, cat, "typed\n")
	if r := call(t, c, "process_input", object{"process_id": cat, "rows": 10, "cols": 20}); !r.IsError {
		t.Errorf("a pipe was resized: %s", text(t, r))
	}
	if r := call(t, c, "process_input", object{"process_id": cat, "eof": true}); r.IsError {
		t.Error(text(t, r))
	}
	if o := readUntil(t, c, cat, ""); o["exit_code"] != 5. {
		t.Errorf("ended with %v, want exit code 5", o)
	}

	started := structured(t, call(t, c, "bash", object{"command": "stty size; read -r x; stty size; sleep 1000", "background": true, "terminal": true}))
	terminal := started["process_id"].(string)
	readUntil(t, c, terminal, "24 80")
	if r := call(t, c, "process_input", object{"process_id": terminal, "rows": 10, "cols": 20, "input": "\n"}); r.IsError {
		t.Error(text(t, r))
	}
	readUntil(t, c, terminal, "10 20")
	if r := call(t, c, "process_signal", object{"process_id": terminal, "signal": "FLY"}); !r.IsError || !strings.HasPrefix(text(t, r), "process signal failed: ") {
		t.Errorf("an unknown signal: %v %s", r.IsError, text(t, r))
	}
	if r := call(t, c, "process_signal", object{"process_id": terminal, "signal": "KILL"}); r.IsError {
		t.Error(text(t, r))
	}
	if o := readUntil(t, c, terminal, ""); o["exit_code"] != 137. {
		t.Errorf("ended with %v, want 137", o)
	}
	listed := structured(t, call(t, c, "process_list", object{}))["processes"].([]any)
	if len(listed) != 2 || listed[0].(object)["process_id"] != cat || listed[1].(object)["terminal"] != true {
		t.Errorf("list %v, want both", listed)
	}
}
