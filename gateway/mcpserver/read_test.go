package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/room"
)

// dribbling is an artifact that is announced and doesn't come.
type dribbling struct{}

func (dribbling) Open(ctx context.Context, _ http.Header, _ artifact.Handle, _ artifact.Part) (*artifact.Reading, error) {
	return &artifact.Reading{Length: 8, Body: endless{ctx}}, nil
}

type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (endless) Close() error { return nil }

// The room for a read is others' too: its pod can't hold it, and waiting for it
// doesn't count.
func TestReadFromADribblingPodEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Artifacts: dribbling{}, reads: room.New(8, 8)}
		scope, answered := context.WithCancel(t.Context())
		if err := s.reads.Admit(cancellation.WithScope(t.Context(), scope), 8); err != nil {
			t.Fatal(err)
		}
		const waited = 30 * time.Second
		time.AfterFunc(waited, answered)
		start := time.Now()
		_, err := s.content(t.Context(), nil, artifact.Handle{}, artifact.Part{}, maxRead)
		if took := time.Since(start); !errors.Is(err, errSlow) || took != waited+bodyWait {
			t.Errorf("error %v after %s, want %v after %s", err, took, errSlow, waited+bodyWait)
		}
	})
}

// mistaken is a source of artifacts that panics once.
type mistaken struct{ done bool }

func (m *mistaken) Open(context.Context, http.Header, artifact.Handle, artifact.Part) (*artifact.Reading, error) {
	if !m.done {
		m.done = true
		panic("a bug")
	}
	return &artifact.Reading{Name: "f", MIMEType: "text/plain", Size: 1, Length: 1, Body: io.NopCloser(strings.NewReader("x"))}, nil
}

// R21: a panic is one failed read, in the audit too; its place is another's then.
func TestPanicOfARead(t *testing.T) {
	t.Parallel()
	const uri = "artifact://berth/n.s.0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
	for _, era := range []string{"2025-11-25", modernVersion} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			server := newServer(t, nil, &mistaken{}, slog.NewJSONHandler(&log, nil))
			meta := ""
			if era >= modernVersion {
				meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + era + `","io.modelcontextprotocol/clientCapabilities":{}}`
			}
			for _, want := range []struct{ answer, code string }{
				{`"error":{"code":-32603,"message":"internal error"}`, `"code":"panic"`},
				{`"text":"x"`, `"code":"ok"`},
			} {
				log.Reset()
				body := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + uri + `"` + meta + `}}`
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
				for name, value := range map[string]string{
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"Mcp-Protocol-Version": era, "Mcp-Method": "resources/read", "Mcp-Name": uri,
				} {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				server.ServeHTTP(w, r)
				if got := w.Body.String(); !strings.Contains(got, want.answer) {
					t.Errorf("answer %s, want %s", got, want.answer)
				}
				if got := log.String(); !strings.Contains(got, want.code) {
					t.Errorf("log %s, want a call of %s", got, want.code)
				}
			}
		})
	}
}
