package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
	"github.com/berth-dev/berth/test/s3server"
)

// stored is a session of alice's on a real agent, whose exports go to a bucket of
// a real S3 server.
type stored struct {
	t         *testing.T
	api       *fakeAPI
	agent     *localagent.Agent
	s3        *s3server.Server
	workspace string
	sandbox   *berthv1alpha1.Sandbox
	config    string // the stores' configuration file
}

const bucket = "artifacts"

func newStored(t *testing.T, template berthv1alpha1.StoreName) *stored {
	t.Helper()
	s := &stored{t: t, api: newAPI(t), workspace: t.TempDir()}
	var err error
	s.agent, err = localagent.Start(t.Context(), localagent.Options{
		Workspace: s.workspace, Environ: []string{"PATH=/usr/bin:/bin"}, Limits: agent.Limits{ArtifactBytes: 64 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.agent.Stop)
	setSigningKey(t, s.api, s.agent.Key)
	s.sandbox = readyOn(newSandbox("s", "alice"), &fakeAgent{audience: s.agent.Pod.Namespace + "/" + s.agent.Pod.UID, ip: s.agent.Pod.IP.String()})
	s.sandbox.Status.KeyID = localagent.KeyID
	s.sandbox.Status.ArtifactStore = template
	s.api.put(t, s.sandbox)

	s.s3, err = s3server.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.s3.Stop)
	if err := s.s3.MakeBucket(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s.config = filepath.Join(dir, "stores.yaml")
	for name, text := range map[string]string{
		"access": s.s3.AccessKey, "secret": s.s3.SecretKey,
		"stores.yaml": fmt.Sprintf("stores:\n- {name: archive, endpoint: 'https://%s', caFile: %s, region: %s, bucket: %s, accessKeyFile: %s, secretKeyFile: %[5]s, expiry: 2h}\n",
			s.s3.Address, s.s3.CAFile, s3server.Region, bucket, filepath.Join(dir, "access")),
	} {
		text = strings.Replace(text, "secretKeyFile: "+filepath.Join(dir, "access"), "secretKeyFile: "+filepath.Join(dir, "secret"), 1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// replica starts a gateway that has the store.
func (s *stored) replica() *stack {
	s.t.Helper()
	return newStackFor(s.t, s.api, agent.Options{Port: s.agent.Port, AllowLoopback: true},
		func(o *gateway.Options) { o.ArtifactStores = s.config })
}

// write puts a file into the session's workspace, and gives its SHA-256.
func (s *stored) write(name string, data []byte) string {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.workspace, name), data, 0o644); err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (s *stored) objects() (keys []string) {
	s.t.Helper()
	c, err := s.s3.Client()
	if err != nil {
		s.t.Fatal(err)
	}
	for object := range c.ListObjectsIter(s.t.Context(), bucket, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			s.t.Fatal(object.Err)
		}
		keys = append(keys, object.Key)
	}
	return keys
}

// An export outlives its session: with the Sandbox deleted, its agent ended and
// the gateway restarted, another replica reads it for its owner, by each of the
// ways there are, and for no other.
func TestAStoredExportOutlivesItsSession(t *testing.T) {
	t.Parallel()
	s := newStored(t, "archive")
	data := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	digest := s.write("data.bin", data)
	first := s.replica()
	result := call(t, first.connect(eras[1], "alice", "s"), "export_artifact", object{"path": "data.bin"})
	out := structured(t, result)
	uri, _ := out["uri"].(string)
	if !regexp.MustCompile(`^artifact://berth/sandboxes\.s\.[0-9a-f]{32}\.archive\.[0-9]{10}$`).MatchString(uri) ||
		out["sha256"] != digest || out["size"] != float64(len(data)) || out["name"] != "data.bin" {
		t.Fatalf("exported as %v", out)
	}
	if left, _ := out["expires_in"].(float64); left > 7201 || left < 7000 || !strings.HasSuffix(text(t, result), "readable for 2 hours.") {
		t.Errorf("text %q, expires_in %v", text(t, result), left)
	}
	if keys := s.objects(); len(keys) != 1 {
		t.Fatalf("objects %q, want one", keys)
	}
	// The agent's slot is free.
	if got := s.agentHolds(); got != 0 {
		t.Errorf("the agent holds %d artifacts", got)
	}

	if resp, _ := first.do(http.MethodDelete, "/sessions/s", "alice", nil, nil); resp.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %s", resp.Status)
	}
	s.agent.Stop()
	first.stop()
	if err := <-first.done; err != nil {
		t.Fatal(err)
	}
	second := s.replica()
	s.readsAll(second, uri, data, digest)

	// Another caller has a session of that name now: the file is still alice's.
	s.api.put(t, newSandbox("s", "bob"))
	s.readsAll(second, uri, data, digest)
	for _, era := range eras {
		if _, err := second.connect(era, "bob", "").ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "Resource not found") {
			t.Errorf("%s: another caller read it: %v", era, err)
		}
		if _, err := second.connect(era, "alice", "t").ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "Resource not found") {
			t.Errorf("%s: in another session: %v", era, err)
		}
	}
	if resp, _ := second.do(http.MethodGet, "/artifacts/"+strings.TrimPrefix(uri, "artifact://berth/"), "bob", nil, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("another caller's GET: %s", resp.Status)
	}
	s.saysNothing(first, "data.bin", uri)
	s.saysNothing(second, "data.bin", uri)
}

// saysNothing holds that a replica's log has no credentials, no key and none of these.
func (s *stored) saysNothing(on *stack, secrets ...string) {
	s.t.Helper()
	for _, secret := range append(append(secrets, s.s3.SecretKey, s.s3.AccessKey), s.objects()...) {
		if strings.Contains(on.log.String(), secret) {
			s.t.Errorf("the log holds %q", secret)
		}
	}
}

// agentHolds is how many exports the agent has: as many as can't be made any more.
func (s *stored) agentHolds() int {
	s.t.Helper()
	s.write("small", nil)
	for i := range agent.MaxArtifacts + 1 {
		if _, err := s.agent.Client.Export(s.t.Context(), s.agent.Pod, agent.ExportRequest{Path: "small"}); err != nil {
			return agent.MaxArtifacts - i
		}
	}
	return 0
}

// readsAll reads the artifact as alice by resources/read in both eras and by GET,
// whole and in parts.
func (s *stored) readsAll(on *stack, uri string, data []byte, digest string) {
	t := s.t
	t.Helper()
	for _, era := range eras {
		c := on.connect(era, "alice", "")
		for query, want := range map[string][]byte{"": data, "?offset=100&length=50": data[100:150], "?offset=3145720": data[3145720:]} {
			result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri + query})
			if err != nil {
				t.Fatalf("%s: %s: %v", era, query, err)
			}
			got := result.Contents[0]
			if !bytes.Equal(append(got.Blob, got.Text...), want) {
				t.Errorf("%s: %s: %d bytes, want %d", era, query, len(got.Blob)+len(got.Text), len(want))
			}
		}
	}
	path := "/artifacts/" + strings.TrimPrefix(uri, "artifact://berth/")
	resp, body := on.do(http.MethodGet, path, "alice", nil, nil)
	if resp.StatusCode != http.StatusOK || body != string(data) || resp.Header.Get("ETag") != `"`+digest+`"` {
		t.Errorf("GET: %s, %d bytes, ETag %s", resp.Status, len(body), resp.Header.Get("ETag"))
	}
	resp, body = on.do(http.MethodGet, path, "alice", nil, func(r *http.Request) { r.Header.Set("Range", "bytes=-7") })
	if resp.StatusCode != http.StatusPartialContent || body != string(data[len(data)-7:]) {
		t.Errorf("GET of the end: %s, %q", resp.Status, body)
	}
}

// A file too large to be copied has its digest too, and goes the same way.
func TestALargeStoredExport(t *testing.T) {
	t.Parallel()
	s := newStored(t, "archive")
	data := bytes.Repeat([]byte("0123456789abcdeF"), 24<<20/16)
	digest := s.write("large.bin", data)
	on := s.replica()
	out := structured(t, call(t, on.connect(eras[1], "alice", "s"), "export_artifact", object{"path": "large.bin"}))
	if out["sha256"] != digest {
		t.Fatalf("exported as %v, want SHA-256 %s", out, digest)
	}
	_, body := on.do(http.MethodGet, "/artifacts/"+strings.TrimPrefix(out["uri"].(string), "artifact://berth/"), "alice", nil, nil)
	if body != string(data) {
		t.Errorf("%d bytes came back", len(body))
	}
}

// An empty file is read in each way that there is, as one in its sandbox is.
func TestAnEmptyStoredExport(t *testing.T) {
	t.Parallel()
	s := newStored(t, "archive")
	s.write("f", nil)
	on := s.replica()
	c := on.connect(eras[1], "alice", "s")
	uri := structured(t, call(t, c, "export_artifact", object{"path": "f"}))["uri"].(string)
	for _, header := range []string{"", "Range: bytes=0-0", "Range: bytes=5-", "Range: bytes=-5", `If-None-Match: "x"`, `If-Match: *`} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			name, value, _ := strings.Cut(header, ": ")
			resp, body := on.do(method, "/artifacts/"+strings.TrimPrefix(uri, "artifact://berth/"), "alice", nil, withHeader(name, value))
			if resp.StatusCode != http.StatusOK || body != "" || resp.ContentLength != 0 {
				t.Errorf("%s %s: %s, %q of %d bytes", method, header, resp.Status, body, resp.ContentLength)
			}
		}
	}
	for _, query := range []string{"", "?offset=0", "?offset=0&length=5"} {
		result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri + query})
		if err != nil || len(result.Contents) != 1 || len(result.Contents[0].Blob) != 0 || result.Contents[0].Text != "" {
			t.Errorf("resources/read %s: %+v, %v", query, result, err)
		}
	}
	if result := call(t, c, "read_artifact", object{"uri": uri}); result.IsError || !strings.HasSuffix(text(t, result), "is empty.") {
		t.Errorf("read_artifact: %s", text(t, result))
	}
}

// Where a template names a store that the gateway hasn't, nothing is exported and
// the error says so; without a store all is as ever.
func TestAStoreThatIsNotConfigured(t *testing.T) {
	t.Parallel()
	s := newStored(t, "elsewhere")
	s.write("f", []byte("data"))
	on := s.replica()
	c := on.connect(eras[1], "alice", "s")
	result := call(t, c, "export_artifact", object{"path": "f"})
	if got := text(t, result); !result.IsError || !strings.Contains(got, `artifact store "elsewhere", which this gateway has not`) {
		t.Errorf("%v %q", result.IsError, got)
	}
	if got := s.agentHolds(); got != 0 {
		t.Errorf("the agent holds %d artifacts", got)
	}
}

// A store that is down fails the export with words that name it, and keeps
// nothing; when it is back, the next one succeeds.
func TestAStoreThatIsDown(t *testing.T) {
	t.Parallel()
	s := newStored(t, "archive")
	s.write("f", []byte("data"))
	on := s.replica()
	c := on.connect(eras[1], "alice", "s")
	before := structured(t, call(t, c, "export_artifact", object{"path": "f"}))["uri"].(string)
	s.s3.Stop()
	result := call(t, c, "export_artifact", object{"path": "f"})
	if got, want := text(t, result), `artifact export failed: artifact store "archive" can't be reached; try again`; !result.IsError || got != want {
		t.Errorf("%v %q, want %q", result.IsError, got, want)
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: before}); err == nil || !strings.Contains(err.Error(), `artifact store "archive" can't be reached`) {
		t.Errorf("read: %v", err)
	}
	if strings.Contains(on.log.String(), s.s3.Address+"/") {
		t.Error("the log holds a key's URL")
	}
	if err := s.s3.Restart(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if result := call(t, c, "export_artifact", object{"path": "f"}); result.IsError {
		t.Error(text(t, result))
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: before}); err != nil {
		t.Error(err)
	}
}
