package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/files"
	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// fileTools is a server of an empty workspace, and that.
func fileTools(t *testing.T, clock upload.Clock) (s *Server, log *bytes.Buffer, dir string) {
	t.Helper()
	dir = t.TempDir()
	store, err := files.NewStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s, log = uploads(t, saves{}, clock)
	s.KeepFiles(store)
	return s, log, dir
}

func askFiles(ctx context.Context, s *Server, method, path, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "localhost"
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestStalledWriteFailsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	clock := &manual{armed: make(chan time.Duration, 10)}
	s, log, dir := fileTools(t, clock)
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "PUT %s?path=made/a HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n", wire.FilePath, wire.FileType)
	<-clock.armed
	fmt.Fprint(conn, "0123456789")
	if got := <-clock.armed; got != upload.StallTime { // the first piece has been written
		t.Errorf("the next piece has %v", got)
	}
	clock.runOut()
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), wire.CodeStalled) {
		t.Errorf("%q, %v, want 408 and the connection's end", answer, err)
	}
	<-ended
	if !strings.Contains(log.String(), `"msg":"File write failed","session":"local","bytes":10,`) || !strings.Contains(log.String(), `"status":408,"code":"stalled"`) {
		t.Errorf("log %s", log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// Once the agent drains, nothing is written any more.
func TestFileToolsWhileDraining(t *testing.T) {
	t.Parallel()
	s, _, _ := fileTools(t, never{})
	if w := askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", wire.FileType, "abc"); w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	const change = `{"edits":[{"old":"b","new":"c"}]}`
	s.Drain(t.Context())
	for _, w := range []*httptest.ResponseRecorder{
		askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", wire.FileType, "x"),
		askFiles(t.Context(), s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change),
	} {
		if w.Code != 503 || !strings.Contains(w.Body.String(), wire.CodeDraining) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := askFiles(t.Context(), s, http.MethodGet, wire.FilesPath+"?path=f", "", ""); w.Code != 200 || w.Body.String() != "abc" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.files.Refuse()
	if w := askFiles(t.Context(), s, http.MethodGet, wire.ListPath, "", ""); w.Code != 503 || !strings.Contains(w.Body.String(), wire.CodeDraining) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Pages of a browser can't write: what they may send anywhere is refused.
func TestLocalGateTakesWritesOfOneType(t *testing.T) {
	t.Parallel()
	s, _, _ := fileTools(t, never{})
	s.gate = Local{}
	for kind, want := range map[string]int{wire.FileType: 201, "text/plain": 415, contentJSON: 415, "": 415} {
		if w := askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", kind, "x"); w.Code != want {
			t.Errorf("%q: %d %s, want %d", kind, w.Code, w.Body, want)
		}
	}
	if w := askFiles(t.Context(), s, http.MethodPost, wire.EditPath+"?path=f", "text/plain", "{}"); w.Code != 415 {
		t.Errorf("edit: %d %s", w.Code, w.Body)
	}
}

// Calls wait for memory, and give up with their callers.
func TestFileToolsWaitForRoom(t *testing.T) {
	t.Parallel()
	s, _, _ := fileTools(t, never{})
	askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", wire.FileType, "abc")
	held, err := s.unread.take(t.Context(), maxUnread)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const change = `{"edits":[{"old":"b","new":"c"}]}`
	calls := func(ctx context.Context) []*httptest.ResponseRecorder {
		return []*httptest.ResponseRecorder{
			askFiles(ctx, s, http.MethodGet, wire.FilesPath+"?path=f&line=1", "", ""),
			askFiles(ctx, s, http.MethodGet, wire.ListPath, "", ""),
			askFiles(ctx, s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change),
		}
	}
	for i, w := range calls(gone) {
		if w.Code < 400 {
			t.Errorf("call %d got %d %s without room", i, w.Code, w.Body)
		}
	}
	held.release()
	for i, w := range calls(t.Context()) {
		if w.Code != 200 {
			t.Errorf("call %d: %d %s", i, w.Code, w.Body)
		}
	}
	if s.unread.held != 0 {
		t.Errorf("%d bytes are still held", s.unread.held)
	}
}

// Large requests to edit are held a few at a time; small ones don't wait for them.
func TestLargeEditsWait(t *testing.T) {
	t.Parallel()
	s, _, _ := fileTools(t, never{})
	askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", wire.FileType, "abc")
	for range maxLargeEdits {
		s.edits <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	change := func(size int) string {
		return `{"edits":[{"old":"b","new":"` + strings.Repeat("b", size-len(`{"edits":[{"old":"b","new":""}]}`)) + `"}]}`
	}
	if w := askFiles(gone, s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change(largeEdit+1)); w.Code != 408 {
		t.Errorf("a large one: %d %s", w.Code, w.Body)
	}
	if w := askFiles(t.Context(), s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change(largeEdit)); w.Code != 200 {
		t.Errorf("one that is just not: %d %s", w.Code, w.Body)
	}
	<-s.edits
	askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", wire.FileType, "abc")
	if w := askFiles(t.Context(), s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change(largeEdit+1)); w.Code != 200 {
		t.Errorf("a large one, then: %d %s", w.Code, w.Body)
	}
	if len(s.edits) != maxLargeEdits-1 {
		t.Errorf("%d are held", len(s.edits))
	}
}

// Small ones are held some at a time.
func TestSmallEditsWait(t *testing.T) {
	t.Parallel()
	s, _, _ := fileTools(t, never{})
	askFiles(t.Context(), s, http.MethodPut, wire.FilePath+"?path=f", wire.FileType, "abc")
	for range maxSmallEdits {
		s.smallEdits <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const change = `{"edits":[{"old":"b","new":"c"}]}`
	if w := askFiles(gone, s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change); w.Code != 408 {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	<-s.smallEdits
	if w := askFiles(t.Context(), s, http.MethodPost, wire.EditPath+"?path=f", contentJSON, change); w.Code != 200 {
		t.Errorf("then: %d %s", w.Code, w.Body)
	}
	if len(s.smallEdits) != maxSmallEdits-1 {
		t.Errorf("%d are held", len(s.smallEdits))
	}
}

// A file that shrinks while it is sent breaks the connection.
func TestFileThatShrinksBreaksOff(t *testing.T) {
	t.Parallel()
	s, _, dir := fileTools(t, never{})
	reach, err := s.files.Within(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reach.Done()
	if err := os.WriteFile(dir+"/f", []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := reach.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(dir+"/f", 5); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Error("a reader takes what came for all there is")
		}
	}()
	_, _ = io.Copy(io.Discard, whole{io.NewSectionReader(f, 0, f.Facts.Size)})
}
