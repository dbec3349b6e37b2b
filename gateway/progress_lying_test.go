package gateway_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// R18: what no honest agent streams is an error of the one call, and no command
// that has written something is sent again.
func TestLyingStreams(t *testing.T) {
	t.Parallel()
	const (
		unusable = "sandbox exec failed: the sandbox's agent gave an answer that can't be used"
		lost     = "sandbox exec failed: the connection to the sandbox was lost; what was asked may have run"
	)
	refuse := func(f frames, code string) {
		f.json(frameError, map[string]any{"error": map[string]any{"code": code, "message": "nothing ran"}})
	}
	tests := map[string]struct {
		stream func(f frames)
		want   string
	}{
		"no result":                {func(f frames) { f.stdout("x") }, lost},
		"nothing at all":           {func(f frames) { f.w.Header().Set("Content-Type", framesType) }, lost},
		"half a header":            {func(f frames) { f.w.Header().Set("Content-Type", framesType); f.w.Write([]byte{1, 0}) }, lost},
		"half a frame":             {func(f frames) { f.header(client.FrameStdout, 100); f.w.Write([]byte("x")) }, lost},
		"huge frame":               {func(f frames) { f.header(client.FrameStdout, 1<<20+1) }, unusable},
		"hugest frame":             {func(f frames) { f.header(client.FrameStderr, 1<<32-1) }, unusable},
		"huge result":              {func(f frames) { f.header(frameResult, 10<<20+1) }, unusable},
		"unknown kind":             {func(f frames) { f.frame(9, []byte("x")) }, unusable},
		"kind 0":                   {func(f frames) { f.frame(0, nil) }, unusable},
		"result that is no JSON":   {func(f frames) { f.frame(frameResult, []byte("<html>")) }, unusable},
		"impossible exit code":     {func(f frames) { f.result(client.ExecResult{ExitCode: 70000}) }, unusable},
		"negative count":           {func(f frames) { f.result(client.ExecResult{StdoutBytes: -1}) }, unusable},
		"refusal that is no JSON":  {func(f frames) { f.frame(frameError, []byte("{")) }, unusable},
		"refusal of what has run":  {func(f frames) { f.stdout("x"); refuse(f, "draining") }, unusable},
		"session wanted after all": {func(f frames) { f.stdout("x"); refuse(f, "session_required") }, unusable},
		"another type": {func(f frames) {
			f.w.Header().Set("Content-Type", "text/html")
			f.w.Write([]byte("x"))
		}, unusable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) { tc.stream(f) }
			resp := l.begin(t.Context(), eras[1], progressBody(eras[1], "1", "x"))
			body := bufio.NewScanner(resp.Body)
			last := ""
			for body.Scan() {
				if strings.HasPrefix(body.Text(), "data: ") {
					last = body.Text()
				}
			}
			if !strings.Contains(last, `"text":"`+tc.want) || !strings.Contains(last, `"isError":true`) {
				t.Errorf("last event %s, want an error %q", last, tc.want)
			}
			if n := len(l.agent.ran()); n != 1 {
				t.Errorf("the command was begun %d times", n)
			}
		})
	}
}

// A refusal that comes as a frame, when the agent had promised a stream already,
// is one as any other: nothing ran, and the next pod may run it.
func TestRefusalInAStream(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	next := newAgent(t, "pod-2")
	l.agent.stream = func(f frames, _ *http.Request, _ client.ExecRequest) {
		f.json(frameError, map[string]any{"error": map[string]any{"code": "draining", "message": "this pod goes"}})
		go l.api.setStatus(t, readyOn(l.sandbox.DeepCopy(), next))
	}
	stream := events{t: t, lines: bufio.NewReader(l.begin(t.Context(), eras[1], progressBody(eras[1], "1", "x")).Body)}
	var last event
	for m, ok := stream.next(); ok; m, ok = stream.next() {
		last = m
	}
	if last.Result == nil || last.Result.IsError || len(next.ran()) != 1 {
		t.Errorf("result %+v, the next pod ran %d commands; want its result", last.Result, len(next.ran()))
	}
}
