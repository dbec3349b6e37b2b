package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// forEachEra runs a test in every protocol era.
func forEachEra(t *testing.T, test func(t *testing.T, era string)) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			test(t, era)
		})
	}
}

// R12: the session comes from X-Session-ID alone, and is checked before the API
// server is asked for anything.
func TestSessionComesFromTheHeaderAlone(t *testing.T) {
	t.Parallel()
	longest := "a" + strings.Repeat("-", 61) + "z"
	tests := map[string]struct {
		values []string
		want   string // in the error; empty if it works
	}{
		"missing":            {nil, "missing X-Session-ID header"},
		"empty":              {[]string{""}, "missing X-Session-ID header"},
		"upper case":         {[]string{"Alice"}, "invalid X-Session-ID header"},
		"begins with a dash": {[]string{"-a"}, "invalid X-Session-ID header"},
		"ends with a dash":   {[]string{"a-"}, "invalid X-Session-ID header"},
		"a dot":              {[]string{"a.b"}, "invalid X-Session-ID header"},
		"a slash":            {[]string{"a/b"}, "invalid X-Session-ID header"},
		"another namespace":  {[]string{"../other/a"}, "invalid X-Session-ID header"},
		"64 characters":      {[]string{longest + "z"}, "invalid X-Session-ID header"},
		"not ASCII":          {[]string{"séance"}, "invalid X-Session-ID header"},
		"63 characters":      {[]string{longest}, ""},
		"one character":      {[]string{"7"}, ""},
	}
	forEachEra(t, func(t *testing.T, era string) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				api := newAPI(t)
				if tc.want == "" {
					api.put(t, readyOn(newSandbox(tc.values[0], "alice"), newAgent(t, "pod")))
				}
				before, _, _, _ := api.counts()
				s := newStack(t, api, nil)
				h := http.Header{"Authorization": {"Bearer alice"}}
				if tc.values != nil {
					h["X-Session-Id"] = tc.values
				}
				result := bash(t, s.connectWith(era, h), "true")
				if tc.want == "" {
					if result.IsError {
						t.Fatalf("error %q, want a result", text(t, result))
					}
					return
				}
				if got := text(t, result); !result.IsError || !strings.Contains(got, tc.want) {
					t.Errorf("isError %v, text %q; want an error that contains %q", result.IsError, got, tc.want)
				}
				if creates, reads, _, _ := api.counts(); creates != before || reads != 0 {
					t.Errorf("%d Sandboxes created and %d read, want none", creates-before, reads)
				}
			})
		}
	})
}

// R12, R13: arguments are checked by the schema; what a template doesn't say is
// 60 s by default and 300 s at most.
func TestBashArguments(t *testing.T) {
	t.Parallel()
	type arguments = map[string]any
	tests := map[string]struct {
		arguments any
		timeout   float64 // what reaches the agent; 0 if the arguments are refused
		output    int
	}{
		"no command":               {arguments{}, 0, 0},
		"empty command":            {arguments{"command": ""}, 0, 0},
		"command of another type":  {arguments{"command": 7}, 0, 0},
		"blank command":            {arguments{"command": "  "}, 60, 0},
		"no timeout":               {arguments{"command": "x"}, 60, 0},
		"timeout 0":                {arguments{"command": "x", "timeout": 0}, 60, 0},
		"timeout below 0":          {arguments{"command": "x", "timeout": -5}, 60, 0},
		"timeout 1":                {arguments{"command": "x", "timeout": 1}, 1, 0},
		"timeout 300":              {arguments{"command": "x", "timeout": 300}, 300, 0},
		"timeout 301":              {arguments{"command": "x", "timeout": 301}, 300, 0},
		"timeout 1e300":            {arguments{"command": "x", "timeout": 1e300}, 300, 0},
		"timeout 60.0":             {json.RawMessage(`{"command":"x","timeout":60.0}`), 60, 0},
		"timeout 1.5":              {arguments{"command": "x", "timeout": 1.5}, 0, 0},
		"timeout as text":          {arguments{"command": "x", "timeout": "60"}, 0, 0},
		"max_output_bytes":         {arguments{"command": "x", "max_output_bytes": 1000}, 60, 1000},
		"max_output_bytes below 0": {arguments{"command": "x", "max_output_bytes": -1}, 60, 0},
		"session as an argument":   {arguments{"command": "x", "session": "other"}, 0, 0},
		"session_id":               {arguments{"command": "x", "session_id": "other"}, 0, 0},
		"the header as argument":   {arguments{"command": "x", "X-Session-ID": "other"}, 0, 0},
		"Command in upper case":    {arguments{"Command": "x"}, 0, 0},
	}
	api := newAPI(t)
	s := newStack(t, api, nil)
	forEachEra(t, func(t *testing.T, era string) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				session := sessionOf(t)
				fa := newAgent(t, "pod-"+session)
				api.put(t, readyOn(newSandbox(session, "alice"), fa))
				c := s.connect(era, "alice", session)
				result := call(t, c, "bash", tc.arguments)
				ran := fa.ran()
				if tc.timeout == 0 {
					if !result.IsError || result.StructuredContent != nil || len(ran) != 0 {
						t.Errorf("isError %v, structured %v, ran %v; want an error of text only and nothing run", result.IsError, result.StructuredContent, ran)
					}
					if got := text(t, result); !strings.HasPrefix(got, "invalid arguments: ") {
						t.Errorf("text %q, want it to begin with %q", got, "invalid arguments: ")
					}
					return
				}
				if result.IsError || len(ran) != 1 {
					t.Fatalf("isError %v (%s), ran %v; want one command", result.IsError, text(t, result), ran)
				}
				if ran[0].Timeout != tc.timeout || ran[0].MaxOutputBytes != tc.output {
					t.Errorf("agent was asked for %v s and %d bytes, want %v and %d", ran[0].Timeout, ran[0].MaxOutputBytes, tc.timeout, tc.output)
				}
			})
		}
	})
}

// R13: a command that ran carries its structured result, and the same as JSON
// text, whether it failed or not.
func TestBashResult(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		result  client.ExecResult
		isError bool
		want    map[string]any
	}{
		"exit 0": {
			client.ExecResult{Stdout: "<a>&\x00\u2028", Stderr: "e", DurationMS: 5, StdoutBytes: 8},
			false,
			map[string]any{"stdout": "<a>&\x00\u2028", "stderr": "e", "exit_code": 0., "duration_ms": 5.},
		},
		"exit 3": {
			client.ExecResult{ExitCode: 3},
			true,
			map[string]any{"stdout": "", "stderr": "", "exit_code": 3., "duration_ms": 0.},
		},
		"timed out, truncated, with notice": {
			client.ExecResult{Stdout: "part", ExitCode: 137, TimedOut: true, Truncated: true, OmittedBytes: 9, Notice: "the shell was replaced"},
			true,
			map[string]any{"stdout": "part", "stderr": "", "exit_code": 137., "duration_ms": 0., "timed_out": true, "truncated": true, "omitted_bytes": 9., "notice": "the shell was replaced"},
		},
	}
	api := newAPI(t)
	s := newStack(t, api, nil)
	forEachEra(t, func(t *testing.T, era string) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				session := sessionOf(t)
				fa := newAgent(t, "pod-"+session)
				fa.exec = func(w http.ResponseWriter, _ *http.Request, _ client.ExecRequest) { agentJSON(w, tc.result) }
				api.put(t, readyOn(newSandbox(session, "alice"), fa))
				result := bash(t, s.connect(era, "alice", session), "x")
				if result.IsError != tc.isError {
					t.Errorf("isError %v, want %v", result.IsError, tc.isError)
				}
				if diff := cmp.Diff(tc.want, result.StructuredContent); diff != "" {
					t.Errorf("structured result (-want +got):\n%s", diff)
				}
				var fromText map[string]any
				if err := json.Unmarshal([]byte(text(t, result)), &fromText); err != nil {
					t.Fatalf("text is no JSON: %v", err)
				}
				if diff := cmp.Diff(tc.want, fromText); diff != "" {
					t.Errorf("JSON text (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// sessionOf is a session ID of the running test's own.
func sessionOf(t *testing.T) string {
	var b strings.Builder
	for _, r := range strings.ToLower(t.Name()) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		}
	}
	name := b.String()
	return name[max(0, len(name)-63):]
}
