package gateway_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// R33: what can't be read of a store, too, is one answer on each surface, whatever
// else the request asks: another's, another store's, namespace's or session's,
// expired, swept, overwritten by somebody, or without the right.
func TestWhatIsNotInAStoreIsIndistinguishable(t *testing.T) {
	t.Parallel()
	s := newStored(t, "archive")
	s.api.allowed = func(r authorizationv1.SubjectAccessReviewSpec) bool { return r.User != users["builder"] }
	s.write("f", []byte("data"))
	on := s.replica()
	c := on.connect(eras[1], "alice", "s")
	export := func() string {
		uri := structured(t, call(t, c, "export_artifact", object{"path": "f"}))["uri"].(string)
		return strings.TrimPrefix(uri, "artifact://berth/")
	}
	kept, gone, overwritten := export(), export(), export()
	s.overwrite(gone, true)
	s.overwrite(overwritten, false)
	parts := strings.Split(kept, ".")
	with := func(i int, part string) string {
		changed := append([]string(nil), parts...)
		changed[i] = part
		return strings.Join(changed, ".")
	}
	api := s.api
	api.put(t, newSandbox("bobs", "bob"))
	for name, tc := range map[string]struct{ caller, header, token string }{
		"another caller":            {"bob", "", kept},
		"who may read no session":   {"builder", "", kept},
		"another namespace":         {"alice", "", with(0, "team")},
		"another session":           {"alice", "", with(1, "t")},
		"another's session":         {"alice", "", with(1, "bobs")},
		"another id":                {"alice", "", with(2, strings.Repeat("1", 32))},
		"a store that isn't there":  {"alice", "", with(3, "elsewhere")},
		"expired":                   {"alice", "", with(4, "1000000000")},
		"another expiry":            {"alice", "", with(4, "9999999999")},
		"as if its agent had it":    {"alice", "", strings.Join(parts[:3], ".")},
		"foreign X-Session-ID":      {"alice", "t", kept},
		"swept":                     {"alice", "", gone},
		"overwritten by somebody":   {"alice", "", overwritten},
		"four parts":                {"alice", "", strings.Join(parts[:4], ".")},
		"six parts":                 {"alice", "", kept + ".x"},
		"a key's part for a store":  {"alice", "", with(3, "archive/x")},
		"an expiry of eleven digit": {"alice", "", with(4, parts[4]+"0")},
	} {
		s.unknownByHTTP(on, name, tc.caller, tc.header, tc.token)
		s.unknownByMCP(on, name, tc.caller, tc.header, tc.token)
	}
	if resp, body := on.do(http.MethodGet, "/artifacts/"+kept, "alice", nil, nil); resp.StatusCode != 200 || body != "data" {
		t.Errorf("its owner's: %s %q", resp.Status, body)
	}
	s.saysNothing(on, parts[2], kept)
}

// overwrite deletes the object of a token, or puts another there.
func (s *stored) overwrite(token string, remove bool) {
	s.t.Helper()
	c, err := s.s3.Client()
	if err != nil {
		s.t.Fatal(err)
	}
	id := strings.Split(token, ".")[2]
	for _, key := range s.objects() {
		switch {
		case !strings.HasSuffix(key, "/"+id):
		case remove:
			err = c.RemoveObject(s.t.Context(), bucket, key, minio.RemoveObjectOptions{})
		default:
			_, err = c.PutObject(s.t.Context(), bucket, key, strings.NewReader("fake"), 4, "", "", minio.PutObjectOptions{})
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stored) unknownByHTTP(on *stack, name, caller, header, token string) {
	s.t.Helper()
	const want = `{"error":{"code":"not_found","message":"artifact not found"}}` + "\n"
	etag := `"` + s.write("f", []byte("data")) + `"`
	for _, more := range []map[string]string{nil, {"Range": "bytes=100-"}, {"If-None-Match": etag}, {"If-Match": `"x"`}, {"Range": "bytes=0-1", "If-Range": etag}} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, body := on.do(method, "/artifacts/"+token, caller, nil, func(r *http.Request) {
				withHeader("X-Session-ID", header)(r)
				for k, v := range more {
					r.Header.Set(k, v)
				}
			})
			for _, leak := range []string{"Etag", "Content-Range", "Content-Disposition", "Repr-Digest", "Retry-After"} {
				if resp.Header.Get(leak) != "" {
					s.t.Errorf("%s: %s %v: %s: %s", name, method, more, leak, resp.Header.Get(leak))
				}
			}
			if resp.StatusCode != http.StatusNotFound || method == http.MethodGet && body != want || resp.ContentLength != int64(len(want)) {
				s.t.Errorf("%s: %s %v: %s, %q of %d bytes", name, method, more, resp.Status, body, resp.ContentLength)
			}
		}
	}
}

func (s *stored) unknownByMCP(on *stack, name, caller, header, token string) {
	s.t.Helper()
	for _, era := range eras {
		c := on.connect(era, caller, header)
		for _, query := range []string{"", "?offset=100", "?offset=0&length=1"} {
			_, err := c.ReadResource(s.t.Context(), &mcp.ReadResourceParams{URI: "artifact://berth/" + token + query})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Message != "Resource not found" {
				s.t.Errorf("%s: %s%s: %v", name, era, query, err)
			}
			result := call(s.t, c, "read_artifact", object{"uri": "artifact://berth/" + token + query})
			if !result.IsError || len(result.Content) != 1 || text(s.t, result) != "artifact read failed: artifact not found" {
				s.t.Errorf("%s: %s%s: %v", name, era, query, text(s.t, result))
			}
		}
	}
}
