package gateway_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// transferBytes is what one round moves.
const transferBytes = 256 << 20

// BenchmarkUpload sends a file through the gateway to a real agent on loopback.
func BenchmarkUpload(b *testing.B) {
	l, workspace := newRealWithin(b, agent.Limits{})
	b.SetBytes(transferBytes)
	for b.Loop() {
		request, err := http.NewRequest(http.MethodPost, l.url+"/sessions/s/files?name=a", io.LimitReader(zeros{}, transferBytes))
		if err != nil {
			b.Fatal(err)
		}
		request.ContentLength = transferBytes
		transfer(b, request, http.StatusCreated)
		if err := os.Remove(filepath.Join(workspace, "uploads", "a")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetArtifact reads a large artifact of a real agent on loopback through
// the gateway.
func BenchmarkGetArtifact(b *testing.B) {
	l, workspace := newRealWithin(b, agent.Limits{ArtifactBytes: transferBytes})
	file, err := os.Create(filepath.Join(workspace, "large"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if _, err := io.CopyN(file, zeros{}, transferBytes); err != nil {
		b.Fatal(err)
	}
	token, _ := strings.CutPrefix(l.exportURI(b, "large"), "artifact://berth/")
	b.SetBytes(transferBytes)
	for b.Loop() {
		request, err := http.NewRequest(http.MethodGet, l.url+"/artifacts/"+token, nil)
		if err != nil {
			b.Fatal(err)
		}
		if n := transfer(b, request, http.StatusOK); n != transferBytes {
			b.Fatalf("%d of %d bytes came", n, transferBytes)
		}
	}
}

// BenchmarkLoopback is the yardstick of both.
func BenchmarkLoopback(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	b.SetBytes(transferBytes)
	for b.Loop() {
		go func() {
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				return // Accept fails
			}
			defer conn.Close()
			buffer := make([]byte, 256<<10)
			for range transferBytes / len(buffer) {
				if _, err := conn.Write(buffer); err != nil {
					return // the other side counts
				}
			}
		}()
		conn, err := listener.Accept()
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
		conn.Close()
		if err != nil || n != transferBytes {
			b.Fatal(n, err)
		}
	}
}

// transfer sends a request of alice's and reads its answer.
func transfer(b *testing.B, request *http.Request, status int) (n int64) {
	b.Helper()
	request.Header.Set("Authorization", "Bearer alice")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if n, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, make([]byte, 256<<10)); err != nil || response.StatusCode != status {
		b.Fatal(response.Status, n, err)
	}
	return n
}

// exportURI exports a file of alice's session s.
func (l *live) exportURI(b *testing.B, path string) string {
	b.Helper()
	result, err := l.client(eras[0]).CallTool(b.Context(), &mcp.CallToolParams{Name: "export_artifact", Arguments: map[string]any{"path": path}})
	if err != nil || result.IsError {
		b.Fatal(result, err)
	}
	return result.StructuredContent.(map[string]any)["uri"].(string)
}
