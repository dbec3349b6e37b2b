package gateway_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// oddRanges are what of ranges clients, and those who are none, send.
var oddRanges = []string{
	"", "bytes=0-", "bytes=-", "bytes=", "bytes", "bytes=0-0,1-1", "bytes=0-0, ", "bytes=,0-0", "bytes= 0-0", "bytes=0 -0", "Bytes=3-4", "bytes =3-4", "bytes=\t3-4\t",
	"bytes=00000000000000000000000-1", "bytes=1-00000000000000000000000000000002", "bytes=99999999999999999999-", "bytes=-99999999999999999999",
	"bytes=9223372036854775807-9223372036854775807", "bytes=0-9223372036854775807", "bytes=999999999999999999-999999999999999999", "bytes=5-999999999999999999",
	"bytes=5-", "bytes=5-5", "bytes=100-", "bytes=99-99", "bytes=-1", "bytes=-100", "bytes=-0", "bytes=+1-2", "bytes=-+1", "bytes=0x1-2", "bytes=1-2-3", "bytes=--1",
}

// R36: whatever range and condition is asked for, what comes is the whole, the part
// that Content-Range says, or a refusal: never other bytes, and never a failure.
func TestOddRangesOfARealArtifact(t *testing.T) {
	t.Parallel()
	l, workspace := newRealWithin(t, agent.Limits{ArtifactBytes: 16 << 20})
	for _, size := range []int{0, 1, 100, agent.DefaultArtifactBytes + 1} {
		data := noise(size)
		if err := os.WriteFile(filepath.Join(workspace, "f"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		path := "/artifacts/" + export(t, l.client(eras[1]), "f")
		resp, _ := l.do(http.MethodHead, path, "alice", nil, nil)
		etag := resp.Header.Get("ETag")
		ifRange := []string{"", etag, "W/" + etag, strings.Trim(etag, `"`), "*", "Tue, 01 Dec 2026 00:00:00 GMT"}
		for _, ranged := range oddRanges {
			for _, condition := range ifRange {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					resp, body := l.do(method, path, "alice", nil, func(r *http.Request) {
						if ranged != "" {
							r.Header.Set("Range", ranged)
						}
						if condition != "" {
							r.Header.Set("If-Range", condition)
						}
					})
					if wrong := wrongPart(resp, body, string(data)); wrong != "" {
						t.Errorf("%s of %d bytes, Range %q, If-Range %q: %s: %s", method, size, ranged, condition, resp.Status, wrong)
					}
				}
			}
		}
	}
}

// wrongPart says what is wrong with an answer to a GET or HEAD of data.
func wrongPart(resp *http.Response, body, data string) string {
	isHead := resp.Request.Method == http.MethodHead
	switch resp.StatusCode {
	case http.StatusOK:
		if !isHead && body != data || resp.ContentLength != int64(len(data)) {
			return fmt.Sprintf("%d bytes of %d announced", len(body), resp.ContentLength)
		}
	case http.StatusPartialContent:
		var first, last, size int
		span := resp.Header.Get("Content-Range")
		if n, err := fmt.Sscanf(span, "bytes %d-%d/%d", &first, &last, &size); n != 3 || err != nil || isHead || size != len(data) || body != data[first:last+1] {
			return fmt.Sprintf("%d bytes as %q", len(body), span)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		// One that is malformed says no size.
		if span := resp.Header.Get("Content-Range"); isHead || len(data) == 0 || span != "" && span != fmt.Sprintf("bytes */%d", len(data)) {
			return fmt.Sprintf("%q, %s", span, body)
		}
	default:
		return body
	}
	return ""
}

// An empty artifact has no byte to begin at: each way to read it says so, or gives
// the whole, as HTTP has it, and none takes its sandbox for lost.
func TestPartOfAnEmptyArtifact(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	if err := os.WriteFile(filepath.Join(workspace, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, era := range eras {
		c := l.client(era)
		uri := "artifact://berth/" + export(t, c, "f")
		for _, query := range []string{"?offset=5", "?offset=5&length=1"} {
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri + query}); err == nil || !strings.Contains(err.Error(), "the offset is at or beyond the end") {
				t.Errorf("%s: resources/read %s: %v", era, query, err)
			}
		}
		for _, offset := range []int{1, 3, 4, 100} { // up to 3 bytes before are read too
			wantFailure(t, "read_artifact", call(t, c, "read_artifact", object{"uri": uri, "offset": offset}), "artifact read failed: the offset is at or beyond the end")
		}
	}
	if strings.Contains(l.log.String(), "Connection to agent was lost") {
		t.Error("the sandbox was taken for lost")
	}
}
