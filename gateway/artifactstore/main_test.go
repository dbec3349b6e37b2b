package artifactstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/test/clock"
	"github.com/berth-dev/berth/test/s3server"
)

// server is one for all tests that need a real one: each has a bucket of its own.
var server struct {
	once sync.Once
	dir  string
	*s3server.Server
	err     error
	buckets atomic.Int64
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.Server != nil {
		server.Stop()
	}
	os.RemoveAll(server.dir)
	os.Exit(code)
}

var (
	demo  = session.Key{Namespace: "sandboxes", Name: "demo"}
	alice = &authn.Caller{User: authenticationv1.UserInfo{Username: "alice"}}
	bob   = &authn.Caller{User: authenticationv1.UserInfo{Username: "bob"}}
	epoch = clock.New().Time
)

// bench is a store on a bucket, and what it tells.
type bench struct {
	*Store
	stores Stores
	t      *testing.T
	config Config
	clock  *clock.Clock
	logged *bytes.Buffer
	swept  int
	seen   []string // operation and outcome
	admin  *minio.Core
}

// newBench makes a store on a bucket of its own on the real server.
func newBench(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	server.once.Do(func() {
		if server.dir, server.err = os.MkdirTemp("", "berth-s3-"); server.err == nil {
			server.Server, server.err = s3server.Start(context.Background(), server.dir)
		}
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	bucket := fmt.Sprintf("bucket-%d", server.buckets.Add(1))
	if err := server.MakeBucket(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	c := Config{
		Name: "archive", Endpoint: "https://" + server.Address, CAFile: server.CAFile, Region: s3server.Region,
		Bucket: bucket, Prefix: "berth/",
	}
	keyFiles(t, &c, server.AccessKey, server.SecretKey)
	b := newBenchOn(t, c, change)
	var err error
	if b.admin, err = server.Client(); err != nil {
		t.Fatal(err)
	}
	return b
}

// newBenchOn makes a store of c.
func newBenchOn(t *testing.T, c Config, change func(*Config)) *bench {
	t.Helper()
	if change != nil {
		change(&c)
	}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, config: c, clock: clock.New(), logged: &bytes.Buffer{}}
	var err error
	b.stores, err = New([]Config{c}, Options{
		Now: b.clock.Now,
		Log: slog.New(slog.NewTextHandler(b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(operation string, err error) {
			if err != nil {
				operation += " failed"
			}
			b.seen = append(b.seen, operation)
		},
		Swept: func(n int) { b.swept += n },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Store = b.stores[c.Name]
	return b
}

// keyFiles writes credentials and names the files in c.
func keyFiles(t *testing.T, c *Config, access, secret string) {
	t.Helper()
	dir := t.TempDir()
	c.AccessKeyFile, c.SecretKeyFile = filepath.Join(dir, "access"), filepath.Join(dir, "secret")
	write(t, c.AccessKeyFile, access+"\n")
	write(t, c.SecretKeyFile, secret)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fileOf is a file of alice's session that holds data.
func fileOf(data []byte) *File {
	return &File{
		Session: demo, Owner: "alice", Name: "report.txt", MIMEType: "text/plain; charset=utf-8",
		Size: int64(len(data)), SHA256: digestOf(data),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// keep puts a file and fails the test if it can't.
func (b *bench) keep(f *File) artifact.Handle {
	b.t.Helper()
	kept, err := b.stores.Put(b.t.Context(), "archive", f)
	if err != nil {
		b.t.Fatalf("put: %v\n%s", err, b.logged)
	}
	return kept.Handle
}

// read opens a part and reads all of it.
func (b *bench) read(caller *authn.Caller, h artifact.Handle, part artifact.Part) (*artifact.Reading, []byte, error) {
	r, err := Source{Stores: b.stores}.Open(b.t.Context(), caller, h, part)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	return r, data, err
}

// keys are those of all objects of the bucket.
func (b *bench) keys() (keys []string) {
	b.t.Helper()
	for object := range b.admin.ListObjectsIter(b.t.Context(), b.bucket, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			b.t.Fatal(object.Err)
		}
		keys = append(keys, object.Key)
	}
	return keys
}

// uploads counts what was begun in parts and is not finished.
func (b *bench) uploads() int {
	b.t.Helper()
	result, err := b.admin.ListMultipartUploads(b.t.Context(), b.bucket, "", "", "", "", 100)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(result.Uploads)
}

// silent fails the test if what is said or logged holds what nobody may see.
func (b *bench) silent(texts ...string) {
	b.t.Helper()
	_, address, _ := strings.Cut(b.config.Endpoint, "://")
	for _, text := range append(texts, b.logged.String()) {
		for _, secret := range []string{"secret-of-the-test", "AKIATEST", address, b.bucket + "/", folder, demo.Name + "/"} {
			if strings.Contains(text, secret) {
				b.t.Errorf("it says %q:\n%s", secret, text)
			}
		}
	}
}
