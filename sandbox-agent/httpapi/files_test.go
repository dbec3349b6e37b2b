package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/upload"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// saves is a store that fails, once it has read the body.
type saves struct{ err error }

func (s saves) Save(_ string, body io.Reader, _ int64) (wire.File, int64, error) {
	n, err := io.Copy(io.Discard, body)
	return wire.File{}, n, errors.Join(s.err, err)
}

// logged is what a server logged about an upload.
type logged struct {
	Level, Msg, Session, Name, Duration, Code string
	Bytes                                     int64
	Status                                    int
}

func uploads(t *testing.T, u Uploads, clock upload.Clock) (s *Server, log *bytes.Buffer) {
	t.Helper()
	s, _ = fixture(t, anyone{})
	log = &bytes.Buffer{}
	s.log = slog.New(slog.NewJSONHandler(log, nil))
	s.KeepUploads(u, clock)
	return s, log
}

// lastLine wants exactly one line, without secret.
func lastLine(t *testing.T, log *bytes.Buffer) (l logged) {
	t.Helper()
	if strings.Count(log.String(), "\n") != 1 {
		t.Fatalf("log %q, want one line", log)
	}
	if err := json.Unmarshal(log.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if d, err := time.ParseDuration(l.Duration); err != nil || d <= 0 || l.Level != "WARN" || l.Msg != "Upload failed" || l.Session != "local" {
		t.Errorf("log %s", log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("log %s: holds the raw name", log)
	}
	return l
}

func TestEachFailedUploadIsOneWarning(t *testing.T) {
	t.Parallel()
	const query = "?name=" + `C%3A%5Csecret%5Ca%0Ab.txt`
	for name, c := range map[string]struct {
		query, kind string
		err         error
		status      int
		code        string
		name        string
		bytes       int64
	}{
		"query":      {"?secret=1", wire.FileType, nil, 400, wire.CodeBadRequest, "", 0},
		"name":       {"?name=secret/..", wire.FileType, nil, 400, wire.CodeBadRequest, "", 0},
		"type":       {query, "text/plain", nil, 415, wire.CodeUnsupportedMedia, "a_b.txt", 0},
		"disk full":  {query, wire.FileType, upload.ErrNoSpace, 507, wire.CodeNoSpace, "a_b.txt", 5},
		"too large":  {query, wire.FileType, upload.ErrTooLarge, 413, wire.CodeTooLarge, "a_b.txt", 5},
		"link":       {query, wire.FileType, upload.ErrDirectory, 403, wire.CodeOutsideWorkspace, "a_b.txt", 5},
		"read-only":  {query, wire.FileType, upload.ErrForbidden, 403, wire.CodeForbidden, "a_b.txt", 5},
		"taken":      {query, wire.FileType, upload.ErrTaken, 409, wire.CodeNameTaken, "a_b.txt", 5},
		"stalled":    {query, wire.FileType, upload.ErrStalled, 408, wire.CodeStalled, "a_b.txt", 5},
		"body":       {query, wire.FileType, upload.ErrBody, 400, wire.CodeBadRequest, "a_b.txt", 5},
		"ending":     {query, wire.FileType, upload.ErrClosed, 503, wire.CodeDraining, "a_b.txt", 5},
		"disk error": {query, wire.FileType, errors.New("input/output error"), 500, wire.CodeInternal, "a_b.txt", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, log := uploads(t, saves{c.err}, nil)
			s.stalls = never{}
			r := httptest.NewRequest(http.MethodPost, wire.FilesPath+c.query, strings.NewReader("bytes"))
			r.Header.Set("Content-Type", c.kind)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), `"code":"`+c.code+`"`) {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, c.status, c.code)
			}
			got := lastLine(t, log)
			if got.Status != c.status || got.Code != c.code || got.Name != c.name || got.Bytes != c.bytes {
				t.Errorf("log %s", log)
			}
		})
	}
}

// never is a clock on which nothing stalls.
type never struct{}

func (never) AfterFunc(time.Duration, func()) func() { return func() {} }

// manual is a clock whose latest timer a test lets run out.
type manual struct {
	mu    sync.Mutex
	fire  func()
	armed chan time.Duration
}

func (m *manual) AfterFunc(d time.Duration, f func()) func() {
	m.mu.Lock()
	m.fire = f
	m.mu.Unlock()
	m.armed <- d
	return func() {}
}

func (m *manual) runOut() {
	m.mu.Lock()
	fire := m.fire
	m.mu.Unlock()
	fire()
}

// sending is an upload over a connection, of 100 bytes of which ten have come.
func sending(t *testing.T) (clock *manual, conn net.Conn, log *bytes.Buffer, dir string, ended <-chan struct{}) {
	t.Helper()
	dir = t.TempDir()
	store, err := upload.NewStore(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	clock = &manual{armed: make(chan time.Duration, 10)}
	s, log := uploads(t, store, clock)
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	conn, err = net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s?name=a HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n", wire.FilesPath, wire.FileType)
	if got := <-clock.armed; got != upload.StallTime {
		t.Errorf("the first piece has %v", got)
	}
	fmt.Fprint(conn, "0123456789")
	if got := <-clock.armed; got != upload.StallTime { // the first has been written
		t.Errorf("the next piece has %v", got)
	}
	return clock, conn, log, dir + "/" + upload.Directory, done
}

func TestStalledUploadFailsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	clock, conn, log, dir, ended := sending(t)
	clock.runOut()
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), wire.CodeStalled) || !strings.Contains(string(answer), "Connection: close") {
		t.Errorf("%q, %v, want 408 and the connection's end", answer, err)
	}
	<-ended
	if got := lastLine(t, log); got.Status != 408 || got.Bytes != 10 || got.Name != "a" {
		t.Errorf("log %s", log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestUploadOfACallerThatIsGoneLeavesNothing(t *testing.T) {
	t.Parallel()
	_, conn, log, dir, ended := sending(t)
	conn.Close()
	<-ended
	if got := lastLine(t, log); got.Status != 400 || got.Bytes != 10 || got.Name != "a" {
		t.Errorf("log %s", log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestUploadIsRefusedWhileDraining(t *testing.T) {
	t.Parallel()
	s, log := uploads(t, saves{}, never{})
	s.Drain(t.Context())
	r := httptest.NewRequest(http.MethodPost, wire.FilesPath+"?name=a", strings.NewReader("x"))
	r.Header.Set("Content-Type", wire.FileType)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || lastLine(t, log).Code != wire.CodeDraining {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A page may send a form anywhere, but no such upload.
func TestLocalGateTakesUploadsOfOneType(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{wire.FileType: 201, "text/plain": 415, contentJSON: 415, "multipart/form-data; boundary=x": 415, "": 415} {
		s, _ := uploads(t, saves{}, never{})
		s.gate = Local{}
		r := httptest.NewRequest(http.MethodPost, wire.FilesPath+"?name=a", strings.NewReader("x"))
		r.Host = "localhost"
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: got %d %s, want %d", kind, w.Code, w.Body, want)
		}
	}
}
