package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

// receive takes an upload as an agent does.
func (a *fakeAgent) receive(w http.ResponseWriter, r *http.Request) {
	if a.upload != nil {
		a.upload(w, r)
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return // the caller has gone
	}
	took(w, r.URL.Query().Get("name"), n)
}

func took(w http.ResponseWriter, name string, size int64) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"path":"/workspace/uploads/%s","name":%q,"size":%d}`, name, name, size)
}

// file is an answer to an upload.
type file struct {
	Path, Name, Notice string
	Size               int64
}

// upload sends a file of a known size.
func (s *stack) upload(token, session, name string, data []byte) (status int, f file, answer string) {
	s.t.Helper()
	resp, answer := s.do(http.MethodPost, "/sessions/"+session+"/files?name="+url.QueryEscape(name), token, bytes.NewReader(data), nil)
	if resp.StatusCode == http.StatusCreated {
		if err := json.Unmarshal([]byte(answer), &f); err != nil {
			s.t.Errorf("answer %q: %v", answer, err)
		}
	}
	return resp.StatusCode, f, answer
}

// R28: whole, through the agent as it is shipped.
func TestUploadToARealAgent(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	sum := sha256.Sum256(data)
	for i, want := range []string{"a_b.tar.gz", "a_b_2.tar.gz"} {
		status, f, answer := l.upload("alice", "s", "../a b.tar.gz", data)
		if status != http.StatusCreated || f.Name != want || f.Path != filepath.Join(workspace, "uploads", want) || f.Size != int64(len(data)) || f.Notice != "" {
			t.Fatalf("upload %d: %d %s", i, status, answer)
		}
		out := structured(t, bash(t, l.client(eras[1]), "sha256sum <"+f.Path))
		if got := fmt.Sprintf("%x  -\n", sum); out["stdout"] != got {
			t.Errorf("a command finds %v, want %s", out["stdout"], got)
		}
	}
	resp, answer := l.do(http.MethodPost, "/sessions/s/files?name=streamed", "alice", io.MultiReader(bytes.NewReader(data)), nil)
	if resp.StatusCode != http.StatusCreated || !strings.Contains(answer, fmt.Sprintf(`"size":%d`, len(data))) {
		t.Errorf("unknown size: %d %s", resp.StatusCode, answer)
	}
	if status, _, answer := l.upload("alice", "s", "empty", nil); status != http.StatusCreated {
		t.Errorf("empty: %d %s", status, answer)
	}
	for _, bad := range []string{"..", "con.txt", " "} {
		if status, _, answer := l.upload("alice", "s", bad, data); status != http.StatusBadRequest || !strings.Contains(answer, `"code":"bad_request"`) {
			t.Errorf("%q: %d %s", bad, status, answer)
		}
	}
	if err := os.Rename(filepath.Join(workspace, "uploads"), filepath.Join(workspace, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("moved", filepath.Join(workspace, "uploads")); err != nil {
		t.Fatal(err)
	}
	if status, _, answer := l.upload("alice", "s", "a", data); status != http.StatusForbidden || strings.Contains(answer, workspace) {
		t.Errorf("a link: %d %s", status, answer)
	}
}

// A caller that goes away leaves nothing.
func TestUploadOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	ended := make(chan error, 1)
	begun := make(chan struct{})
	l.agent.upload = func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
			t.Error(err)
		}
		close(begun)
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	}
	ctx, cancel := context.WithCancel(t.Context())
	body, sender := io.Pipe()
	defer sender.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/sessions/s/files?name=secret", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	done := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	if _, err := sender.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	<-begun
	cancel()
	if err := <-ended; err == nil {
		t.Error("the agent took half a file for a whole one")
	}
	sender.Close() // net/http waits for a Read under way
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.log.await(`"operation":"upload_file"`)
	if log := l.log.String(); !strings.Contains(log, `"code":"cancelled"`) || strings.Contains(log, "secret") {
		t.Errorf("log %s", log)
	}
}

// A pod that takes no more calls is asked once; what would follow it doesn't come.
func TestUploadToAPodThatEnds(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{"draining": 503, "quiesced": 410} {
		api := newAPI(t)
		fa := newAgent(t, "pod-1")
		asked := 0
		fa.upload = func(w http.ResponseWriter, _ *http.Request) {
			asked++
			agentError(w, status, code, "because")
		}
		api.put(t, readyOn(newSandbox("s", "alice"), fa))
		got, _, answer := newStack(t, api, shortWait).upload("alice", "s", "a", []byte("data"))
		if got != http.StatusServiceUnavailable || !strings.Contains(answer, `"code":"not_ready"`) || asked != 1 {
			t.Errorf("%s: %d %s after %d requests", code, got, answer, asked)
		}
	}
}

// One of which some was sent is not sent to another: there is nothing to send.
func TestUploadIsNotRepeatedOnceItsBodyWasRead(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	asked := 0
	l.agent.upload = func(w http.ResponseWriter, r *http.Request) {
		asked++
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		agentError(w, http.StatusConflict, "session_required", "bind first")
	}
	if status, _, answer := l.upload("alice", "s", "a", []byte("data")); status != http.StatusBadGateway || asked != 1 {
		t.Errorf("%d %s after %d requests, want 502 after one", status, answer, asked)
	}
}

// A fresh agent is told its session first, and a session that is missing is made.
// Until its agent agrees, no byte of the body is asked for.
func TestUploadWaitsWithItsBodyForTheSession(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	fa := newAgent(t, "pod-1")
	s := newStack(t, api, nil)
	asked, made := make(chan struct{}), make(chan *berthv1alpha1.Sandbox, 1)
	api.onCreate = func(s *berthv1alpha1.Sandbox) { made <- s.DeepCopy() }
	fa.upload = func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		took(w, "a", n)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /sessions/fresh/files?name=a HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer alice\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	sandbox := <-made
	select {
	case <-asked:
		t.Error("the agent was asked before its session was ready")
	default:
	}
	api.setStatus(t, readyOn(sandbox, fa))
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v, want to be told to go on", line, err)
	}
	<-asked
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "data")
	resp, err := http.ReadResponse(answers, nil)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if fa.session == nil {
		t.Error("the agent was not bound")
	}
}

// R28: no part of a file is held: 2 GiB pass in the memory of a small one.
func TestUploadIsNotHeldInMemory(t *testing.T) {
	const size, most = 2 << 30, 32 << 20
	l := newLive(t)
	var peak atomic.Uint64
	l.agent.upload = func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 256<<10)
		n, looks := int64(0), int64(0)
		for {
			k, err := r.Body.Read(buffer)
			n += int64(k)
			if n>>26 > looks { // each 64 MiB
				looks = n >> 26
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapInuse+m.StackInuse))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
		took(w, "a", n)
	}
	if status, _, answer := l.upload("alice", "s", "a", []byte("warm")); status != http.StatusCreated {
		t.Fatal(answer)
	}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, answer := l.do(http.MethodPost, "/sessions/s/files?name=a", "alice", io.LimitReader(zeros{}, size), func(r *http.Request) { r.ContentLength = size })
	if resp.StatusCode != http.StatusCreated || !strings.Contains(answer, fmt.Sprintf(`"size":%d`, int64(size))) {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	grown := int64(peak.Load()) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("%d MiB grew the memory of client, gateway and agent by %.1f MiB at most", size>>20, float64(grown)/(1<<20))
	if grown > most {
		t.Errorf("memory grew by %d bytes, want %d at most", grown, most)
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestUploadIsCountedAndAudited(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	if status, _, answer := l.upload("alice", "s", "secret.txt", []byte("data")); status != http.StatusCreated {
		t.Fatal(answer)
	}
	l.log.await(`"operation":"upload_file"`)
	log := l.log.String()
	if !strings.Contains(log, `"session":"s","inBytes":4,"outBytes":0`) || !strings.Contains(log, `"code":"ok"`) || strings.Contains(log, "secret") {
		t.Errorf("log %s", log)
	}
	if got := get(t, l.health+"/metrics"); !strings.Contains(got, `berth_gateway_calls_total{code="ok",operation="upload_file"} 1`) || strings.Contains(got, "secret") {
		t.Errorf("metrics %s", got)
	}
}
