package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/clock"
	"github.com/berth-dev/berth/test/localagent"
)

// surfaces asks for an artifact in each way that there is, without X-Session-ID, and
// gives what was answered: its bytes, or in what words it isn't there.
func (l *live) surfaces(token string) map[string]string {
	l.t.Helper()
	const uri = "artifact://berth/"
	all := map[string]string{}
	for _, era := range eras {
		c := l.connect(era, "alice", "")
		read, err := c.ReadResource(l.t.Context(), &mcp.ReadResourceParams{URI: uri + token})
		var refused *jsonrpc.Error
		if errors.As(err, &refused) {
			all["resources/read "+era] = fmt.Sprintf("%d %s %s", refused.Code, refused.Message, refused.Data)
		} else if err != nil {
			l.t.Fatal(err)
		} else {
			all["resources/read "+era] = read.Contents[0].Text + string(read.Contents[0].Blob)
		}
		tool, err := c.CallTool(l.t.Context(), &mcp.CallToolParams{Name: "read_artifact", Arguments: object{"uri": uri + token}})
		switch {
		case err != nil:
			l.t.Fatal(err)
		case tool.IsError:
			all["read_artifact "+era] = withoutRequest(tool.Content[0].(*mcp.TextContent).Text)
		default:
			all["read_artifact "+era] = tool.StructuredContent.(object)["content"].(string)
		}
	}
	resp, body := l.do(http.MethodGet, "/artifacts/"+token, "alice", nil, nil)
	all["GET"] = fmt.Sprint(resp.StatusCode, " ", body)
	resp, _ = l.do(http.MethodHead, "/artifacts/"+token, "alice", nil, nil)
	all["HEAD"] = fmt.Sprint(resp.StatusCode, " ", resp.ContentLength)
	for surface, answer := range all {
		all[surface] = strings.ReplaceAll(answer, token, "TOKEN")
	}
	return all
}

// R30, R33: an artifact is there for exactly 5 minutes, by the clock of its agent.
// Then it is like one that never was, in each way to read it, its file is closed, and
// its place is free.
func TestArtifactExpiresAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	workspace, now := t.TempDir(), clock.NewShared()
	files, err := localagent.StartFiles(workspace, now)
	if err != nil {
		t.Fatal(err)
	}
	l := newLiveOn(t, files.Pod, files.Key, files.Port)
	t.Cleanup(func() {
		if err := files.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(workspace, "f.txt"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := l.client(eras[1])
	token := export(t, c, "f.txt")
	for range agent.MaxArtifacts - 1 {
		export(t, c, "f.txt")
	}
	now.Advance(5*time.Minute - 1)
	for surface, answer := range l.surfaces(token) {
		if want := map[string]string{"GET": "200 content", "HEAD": "200 7"}[surface]; answer != want && answer != "content" {
			t.Errorf("%s, a nanosecond before the end: %q", surface, answer)
		}
	}
	if r := call(t, c, "export_artifact", object{"path": "f.txt"}); !r.IsError {
		t.Error("there was a place for the 129th")
	}
	now.Advance(1)
	random := token[:strings.LastIndex(token, ".")+1] + strings.Repeat("1", 32)
	if diff := cmp.Diff(l.surfaces(random), l.surfaces(token)); diff != "" {
		t.Errorf("expired is told from unknown (-unknown +expired):\n%s", diff)
	}
	if got := l.surfaces(token)["GET"]; !strings.HasPrefix(got, "404 ") {
		t.Errorf("GET: %s", got)
	}
	for range agent.MaxArtifacts {
		export(t, c, "f.txt")
	}
}

// begun is an artifact whose reading has begun: its first byte was read.
func (l *live) begun(t *testing.T, token string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+"/artifacts/"+token, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	return resp
}

// R34: expiry during a read doesn't end it, and Stop, which waits for each file to
// be closed, returns.
func TestArtifactThatExpiresWhileItIsRead(t *testing.T) {
	t.Parallel()
	workspace, now := t.TempDir(), clock.NewShared()
	files, err := localagent.StartFiles(workspace, now)
	if err != nil {
		t.Fatal(err)
	}
	l := newLiveOn(t, files.Pod, files.Key, files.Port)
	data := noise(8 << 20)
	if err := os.WriteFile(filepath.Join(workspace, "f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	token := export(t, l.client(eras[0]), "f")
	resp := l.begun(t, token)
	now.Advance(5 * time.Minute)
	if status, _ := l.fetch(token); status != http.StatusNotFound {
		t.Errorf("who comes after the end: %d, want 404", status)
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(rest, data[1:]) {
		t.Errorf("the reading gave %d bytes, %v", len(rest), err)
	}
	if err := files.Stop(); err != nil {
		t.Error(err)
	}
}

// R34: what is dropped, or whose agent is told to end, during a read is read to its
// end; that of a session that is deleted breaks off, or was all sent.
func TestReadOutlastsItsArtifact(t *testing.T) {
	t.Parallel()
	data := noise(8 << 20)
	for end, do := range map[string]func(t *testing.T, l *live, a *localagent.Agent, token string){
		"dropped": func(t *testing.T, _ *live, a *localagent.Agent, token string) {
			if err := a.Client.DropArtifact(t.Context(), a.Pod, token[strings.LastIndex(token, ".")+1:]); err != nil {
				t.Error(err)
			}
		},
		"session deleted": func(t *testing.T, l *live, _ *localagent.Agent, _ string) {
			if resp, body := l.do(http.MethodDelete, "/sessions/s", "alice", nil, nil); resp.StatusCode != http.StatusNoContent {
				t.Errorf("DELETE: %d %s", resp.StatusCode, body)
			}
		},
		"agent ended": func(t *testing.T, _ *live, a *localagent.Agent, _ string) {
			if err := a.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if !a.Log.Await("Agent began to drain") {
				t.Error("the agent doesn't drain")
			}
		},
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			l, workspace, a := newRealAgent(t, localagent.Options{})
			if err := os.WriteFile(filepath.Join(workspace, "f"), data, 0o644); err != nil {
				t.Fatal(err)
			}
			token := export(t, l.client(eras[1]), "f")
			resp := l.begun(t, token)
			do(t, l, a, token)
			rest, err := io.ReadAll(resp.Body)
			if cut := end == "session deleted" && err != nil; cut && !bytes.HasPrefix(data[1:], rest) || !cut && !bytes.Equal(rest, data[1:]) {
				t.Errorf("the reading gave %d bytes, %v", len(rest), err)
			}
			if end == "agent ended" {
				if err := <-a.Exited; err != nil {
					t.Errorf("the agent ended with %v", err)
				}
				return
			}
			if status, _ := l.fetch(token); status != http.StatusNotFound {
				t.Errorf("who comes then: %d, want 404", status)
			}
		})
	}
}

// R34: an agent that is told to end, or asked whether it is idle, while it makes an
// archive: the export fails clean, or counts as work.
func TestArchiveWhileItsAgentEnds(t *testing.T) {
	t.Parallel()
	l, workspace, a := newRealAgent(t, localagent.Options{Limits: agent.Limits{ArtifactBytes: 1 << 30}})
	if err := os.Mkdir(filepath.Join(workspace, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	sparse, err := os.Create(filepath.Join(workspace, "d/sparse"))
	if err == nil {
		err = sparse.Truncate(60 << 30)
	}
	if err != nil {
		t.Fatal(err)
	}
	sparse.Close()
	ended := make(chan *mcp.CallToolResult, 1)
	c := l.client(eras[1])
	go func() {
		r, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: "export_artifact", Arguments: object{"path": "d", "archive": true}})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	for descriptors(t, a, workspace) < 2 { // the file that it reads, and the one that it writes
		if t.Context().Err() != nil {
			t.Fatal("the archive never began")
		}
	}
	if is, err := a.Client.Quiesce(t.Context(), a.Pod, 0); err != nil || is.Quiesced || is.Other != 1 {
		t.Errorf("quiesce: %+v, %v; want it refused for one call", is, err)
	}
	if err := a.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-a.Exited; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if r := <-ended; r != nil {
		wantFailure(t, "the export", r, "artifact export failed: ")
	}
	if entries, err := os.ReadDir(workspace); err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
}
