package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// uploaded are the names in a workspace's uploads.
func (a *agent) uploaded(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(a.workspace, "uploads"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (a *agent) upload(t testing.TB, name string, data []byte) *client.File {
	t.Helper()
	f, err := a.client.Upload(t.Context(), a.pod, name, int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatalf("upload %q: %v\n%s", name, err, a.log)
	}
	return f
}

func TestUpload(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	data := noise(3 << 20)
	for _, c := range []struct{ name, want string }{
		{" ../a b.tar.gz", "a_b.tar.gz"},
		{"a b.tar.gz", "a_b_2.tar.gz"},
		{"漢&字=ü+1%.txt", "漢&字=ü+1%.txt"},
	} {
		f := a.upload(t, c.name, data)
		if f.Name != c.want || f.Path != filepath.Join(a.workspace, "uploads", c.want) || f.Size != int64(len(data)) {
			t.Errorf("%q became %+v", c.name, f)
		}
		if got, err := os.ReadFile(f.Path); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q is not what was sent: %d bytes, %v", c.name, len(got), err)
		}
	}
	if f := a.upload(t, "empty", nil); f.Size != 0 {
		t.Errorf("empty: %+v", f)
	}
	f, err := a.client.Upload(t.Context(), a.pod, "unknown size", -1, bytes.NewReader(data))
	if err != nil || f.Size != int64(len(data)) {
		t.Errorf("unknown size: %+v, %v", f, err)
	}
	// It is there for commands, wherever they are, and can be exported.
	if got := a.output(t, "cd / && wc -c <"+f.Path); strings.TrimSpace(got) != fmt.Sprint(len(data)) {
		t.Errorf("a command finds %q", got)
	}
	if got, _, err := a.read(t, a.export(t, f.Path).ID, client.Span{}); err != nil || !bytes.Equal(got, data) {
		t.Errorf("exported: %d bytes, %v", len(got), err)
	}
}

func TestUploadIsRefused(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{limits: client.Limits{UploadBytes: 10}})
	const path, octets = "/v1/files", "application/octet-stream"
	for name, c := range map[string]struct {
		query, kind string
		size        int
		status      int
		code        string
	}{
		"no parameter":        {"", octets, 1, 400, "bad_request"},
		"another parameter":   {"?file=a", octets, 1, 400, "bad_request"},
		"one more":            {"?name=a&overwrite=1", octets, 1, 400, "bad_request"},
		"twice":               {"?name=a&name=b", octets, 1, 400, "bad_request"},
		"a bad escape":        {"?name=%zz", octets, 1, 400, "bad_request"},
		"a semicolon":         {"?name=a;b", octets, 1, 400, "bad_request"},
		"an empty name":       {"?name=", octets, 1, 400, "bad_request"},
		"no value":            {"?name", octets, 1, 400, "bad_request"},
		"a directory":         {"?name=..%2F..", octets, 1, 400, "bad_request"},
		"a device":            {"?name=Con.txt", octets, 1, 400, "bad_request"},
		"JSON":                {"?name=se%0Acret", "application/json", 1, 415, "unsupported_media"},
		"a form":              {"?name=a", "multipart/form-data; boundary=x", 1, 415, "unsupported_media"},
		"no type":             {"?name=a", "", 1, 415, "unsupported_media"},
		"one byte too many":   {"?name=a", octets, 11, 413, "too_large"},
		"many bytes too many": {"?name=a", octets, 1 << 20, 413, "too_large"},
	} {
		resp, body := a.raw(t, http.MethodPost, path+c.query, c.kind, strings.Repeat("x", c.size))
		if resp.StatusCode != c.status || errorCode(t, body) != c.code {
			t.Errorf("%s: got %d %s", name, resp.StatusCode, body)
		}
	}
	if resp, body := a.raw(t, http.MethodPut, path, octets, "x"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST" {
		t.Errorf("PUT: %d %s", resp.StatusCode, body)
	}
	if got := a.uploaded(t); len(got) != 0 {
		t.Errorf("%q was made", got)
	}
}

// R29: at the announced length, or at the byte that exceeds.
func TestUploadLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	a := startAgent(t, agentOptions{limits: client.Limits{UploadBytes: limit}})
	for _, size := range []int{limit - 1, limit} {
		a.upload(t, "announced", noise(size))
		if _, err := a.client.Upload(t.Context(), a.pod, "not", -1, bytes.NewReader(noise(size))); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	left := a.uploaded(t)
	counted := &counter{Reader: bytes.NewReader(noise(limit + 1))}
	if _, err := a.client.Upload(t.Context(), a.pod, "announced", limit+1, counted); !errors.Is(err, client.ErrTooLarge) || counted.n != 0 {
		t.Errorf("announced: %v after %d bytes, want ErrTooLarge before any", err, counted.n)
	}
	if _, err := a.client.Upload(t.Context(), a.pod, "not", -1, bytes.NewReader(noise(limit+1))); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("one byte more: %v, want ErrTooLarge", err)
	}
	// A body without end is refused, too.
	body, sender := io.Pipe()
	go func() {
		piece := noise(64 << 10)
		for {
			if _, err := sender.Write(piece); err != nil {
				return
			}
		}
	}()
	if _, err := a.client.Upload(t.Context(), a.pod, "endless", -1, body); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("endless: %v, want ErrTooLarge", err)
	}
	body.Close()
	if got := a.uploaded(t); !slices.Equal(got, left) {
		t.Errorf("%q are there, want %q", got, left)
	}
	a.bind(t, client.Limits{})
	a.upload(t, "unlimited", noise(limit+1))
}

// bind changes a session's limits.
func (a *agent) bind(t testing.TB, limits client.Limits) {
	t.Helper()
	if err := a.client.Bind(t.Context(), a.pod, client.Session{UID: "sandbox-1", Limits: limits}); err != nil {
		t.Fatal(err)
	}
}

// counter counts what is read.
type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestUploadToAFullDisk(t *testing.T) {
	t.Parallel()
	a := asUser(t, agentOptions{}, "mount -t tmpfs -o size=1m none "+userWorkspace, "chown 1000:1000 "+userWorkspace)
	var refusal *client.Error
	_, err := a.client.Upload(t.Context(), a.pod, "a", 8<<20, bytes.NewReader(noise(8<<20)))
	if !errors.As(err, &refusal) || refusal.Status != http.StatusInsufficientStorage || !errors.Is(err, client.ErrNoSpace) {
		t.Errorf("got %v, want 507", err)
	}
	if got := a.output(t, "ls -A uploads"); got != "" {
		t.Errorf("%q is left", got)
	}
	a.upload(t, "a", noise(512<<10))
}

func TestUploadKeepsToTheUmask(t *testing.T) {
	t.Parallel()
	for mask, want := range map[string]string{"022": "755 644\n", "077": "700 600\n", "002": "775 664\n"} {
		a := startAgent(t, agentOptions{within: []string{"umask " + mask}})
		f := a.upload(t, "a", nil)
		if got := a.output(t, "echo $(stat -c %a uploads "+f.Path+")"); got != want {
			t.Errorf("umask %s: %q, want %q", mask, got, want)
		}
	}
}

func TestUploadFollowsNoLink(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	a.output(t, "mkdir elsewhere && ln -s elsewhere uploads")
	var refusal *client.Error
	_, err := a.client.Upload(t.Context(), a.pod, "a", 1, strings.NewReader("x"))
	if !errors.As(err, &refusal) || refusal.Status != http.StatusForbidden || strings.Contains(refusal.Message, a.workspace) {
		t.Errorf("got %v, want 403", err)
	}
	if got := a.output(t, "ls -A elsewhere"); got != "" {
		t.Errorf("%q was made on the other side", got)
	}
	a.output(t, "rm uploads && mkdir -m 500 uploads")
	a.output(t, "rmdir uploads && ln -s /nowhere uploads")
	if _, err = a.client.Upload(t.Context(), a.pod, "a", 1, strings.NewReader("x")); !errors.Is(err, client.ErrOutsideWorkspace) {
		t.Errorf("dangling: %v", err)
	}
	b := asUser(t, agentOptions{})
	b.output(t, "mkdir -m 500 uploads")
	if _, err = b.client.Upload(t.Context(), b.pod, "a", 1, strings.NewReader("x")); !errors.Is(err, client.ErrForbidden) {
		t.Errorf("read-only: %v, want ErrForbidden", err)
	}
}

func TestUploadIsActivityAndRefusedOnceQuiesced(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{})
	conn := a.halfUploaded(t, "a")
	if got, err := a.client.Quiesce(t.Context(), a.pod, 0); err != nil || got.Quiesced || got.Other != 1 {
		t.Errorf("quiesce during an upload: %+v, %v", got, err)
	}
	broken(t, conn)
	if got, err := a.client.Quiesce(t.Context(), a.pod, 0); err != nil || !got.Quiesced {
		t.Errorf("quiesce after it: %+v, %v", got, err)
	}
	counted := &counter{Reader: strings.NewReader("x")}
	if _, err := a.client.Upload(t.Context(), a.pod, "a", 1, counted); !errors.Is(err, client.ErrGone) || counted.n != 0 {
		t.Errorf("upload then: %v after %d bytes, want ErrGone", err, counted.n)
	}
}

func TestUploadNeedsASession(t *testing.T) {
	t.Parallel()
	a := startAgent(t, agentOptions{unbound: true})
	counted := &counter{Reader: strings.NewReader("x")}
	if _, err := a.client.Upload(t.Context(), a.pod, "a", 1, counted); !errors.Is(err, client.ErrSessionRequired) || counted.n != 0 {
		t.Errorf("got %v after %d bytes, want ErrSessionRequired before any", err, counted.n)
	}
}
