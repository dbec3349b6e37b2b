package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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
		s := &Server{Artifacts: dribbling{}, reads: room.New(8)}
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

// R21: a panic is one failed read.
func TestPanicOfARead(t *testing.T) {
	t.Parallel()
	s := &Server{Log: slog.New(slog.DiscardHandler)}
	_, err := s.recoverPanic(func(context.Context, string, mcp.Request) (mcp.Result, error) { panic("a bug") })(t.Context(), methodReadResource, nil)
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInternalError || wire.Message != "internal error" {
		t.Errorf("error %v, want an internal error", err)
	}
}
