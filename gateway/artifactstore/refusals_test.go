package artifactstore

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berth-dev/berth/gateway/artifact"
)

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>key artifacts/1/demo/x of AKIATEST</Message><RequestId>R1</RequestId></Error>", code)
}

// What a store's refusals are for a caller, and how often each is asked again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		code   string
		text   string
		asked  int64
	}{
		{403, "InvalidAccessKeyId", "refused the gateway (InvalidAccessKeyId): whoever runs the gateway must see to its credentials and rights", 1},
		{403, "SignatureDoesNotMatch", "refused the gateway (SignatureDoesNotMatch): whoever runs the gateway must see to its credentials and rights", 1},
		{403, "AccessDenied", "refused the gateway (AccessDenied): whoever runs the gateway must see to its credentials and rights", 1},
		{404, "NoSuchBucket", "has no bucket: whoever runs the gateway must make it", 1},
		{400, "InvalidRequest", "refused what it was asked (InvalidRequest)", 1},
		{301, "PermanentRedirect", "refused what it was asked (PermanentRedirect)", 1},
		{500, "InternalError", "failed (status 500); try again", attempts},
		{503, "SlowDown", "is overloaded; try again", attempts},
		{503, "ServiceUnavailable", "is overloaded; try again", attempts},
		{429, "TooManyRequests", "is overloaded; try again", attempts},
		{507, "XMinioStorageFull", "is full", attempts},
	} {
		t.Run(tc.code, func(t *testing.T) {
			t.Parallel()
			var puts, gets atomic.Int64
			b := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPut:
					puts.Add(1)
				case http.MethodGet:
					gets.Add(1)
				}
				refuse(w, tc.status, tc.code)
			})
			want := `artifact store "archive" ` + tc.text
			_, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data")))
			if err == nil || err.Error() != want || puts.Load() != tc.asked {
				t.Errorf("put: %v, asked %d times; want %s, %d", err, puts.Load(), want, tc.asked)
			}
			_, _, err = b.read(alice, h1, artifact.Part{})
			if err == nil || err.Error() != want || gets.Load() > attempts {
				t.Errorf("get: %v, asked %d times; want %s", err, gets.Load(), want)
			}
			if got := strings.Join(b.seen, ","); got != "put failed,get failed" {
				t.Errorf("observed %s", got)
			}
			if !strings.Contains(b.logged.String(), tc.code) || !strings.Contains(b.logged.String(), "request R1") {
				t.Errorf("the log doesn't say why:\n%s", b.logged)
			}
			b.silent()
		})
	}
}

func TestAStoreThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	s.Close()
	c := Config{Name: "archive", Endpoint: s.URL, Insecure: true, Bucket: "bucket"}
	keyFiles(t, &c, "AKIATEST", "secret-of-the-test")
	b := newBenchOn(t, c, nil)
	b.limits.pause = time.Millisecond
	want := `artifact store "archive" can't be reached; try again`
	if _, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data"))); err == nil || err.Error() != want {
		t.Errorf("put: %v", err)
	}
	if _, _, err := b.read(alice, h1, artifact.Part{}); err == nil || err.Error() != want {
		t.Errorf("get: %v", err)
	}
	b.silent()
}

// On the real server: wrong keys and a bucket that isn't there.
func TestRealRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	write(t, b.config.SecretKeyFile, "another-secret")
	_, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data")))
	if want := "refused the gateway (SignatureDoesNotMatch)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("put with a wrong secret: %v, want %s", err, want)
	}
	// A rotated secret is used by the next request.
	write(t, b.config.SecretKeyFile, server.SecretKey)
	h := b.keep(fileOf([]byte("data")))
	write(t, b.config.AccessKeyFile, "AKIAOTHER")
	if _, _, err := b.read(alice, h, artifact.Part{}); err == nil || !strings.Contains(err.Error(), "refused the gateway (InvalidAccessKeyId)") {
		t.Errorf("get with a wrong key: %v", err)
	}
	write(t, b.config.AccessKeyFile, "")
	if _, _, err := b.read(alice, h, artifact.Part{}); err == nil || !strings.Contains(err.Error(), "has no usable credentials") {
		t.Errorf("get without a key: %v", err)
	}
	write(t, b.config.AccessKeyFile, server.AccessKey)
	if err := b.admin.RemoveObject(t.Context(), b.bucket, b.objectKey(h), minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.admin.RemoveBucket(t.Context(), b.bucket); err != nil {
		t.Fatal(err)
	}
	if _, err := b.stores.Put(t.Context(), "archive", fileOf([]byte("data"))); err == nil || !strings.Contains(err.Error(), "has no bucket") {
		t.Errorf("put without a bucket: %v", err)
	}
	if _, _, err := b.read(alice, h, artifact.Part{}); err == nil || !strings.Contains(err.Error(), "has no bucket") {
		t.Errorf("get without a bucket: %v", err)
	}
	if _, err := b.sweep(t.Context()); err == nil {
		t.Error("a bucket that isn't there was swept")
	}
	b.silent()
}
