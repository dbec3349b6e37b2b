package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/artifactstore"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// exporter is an agent that exports a file of so many bytes.
type exporter struct {
	Agent
	size   int64
	drops  int
	broken error // of a drop
}

func (e *exporter) Export(context.Context, client.Pod, client.ExportRequest) (*client.Artifact, error) {
	return &client.Artifact{ID: strings.Repeat("0f", 16), Name: "f", MIMEType: "text/plain", Size: e.size, ExpiresIn: 300}, nil
}

func (e *exporter) DropArtifact(context.Context, client.Pod, string) error {
	e.drops++
	return e.broken
}

// shelf is a store that keeps what it is given the size of.
type shelf struct {
	puts []int64
	full error // of a put
}

func (*shelf) Check(string) error { return nil }

func (s *shelf) Put(_ context.Context, name string, f *artifactstore.File) (artifactstore.Kept, error) {
	s.puts = append(s.puts, f.Size)
	if s.full != nil {
		return artifactstore.Kept{}, s.full
	}
	return artifactstore.Kept{
		Handle:    artifact.Handle{Key: f.Session, ID: strings.Repeat("0a", 16), Store: name, Expiry: artifact.MinExpiry},
		ExpiresIn: 59,
	}, nil
}

// R18: an agent doesn't fill a store with more than its session's limit lets it
// export; what it took is dropped either way.
func TestALyingExportDoesNotFillAStore(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int64]bool{99: true, 100: true, 101: false, 5 << 40: false} {
		sessions := newOne()
		rec := *sessions.rec
		rec.ArtifactStore, rec.Limits.ArtifactBytes = "archive", 100
		sessions.set(&rec)
		agent, stores := &exporter{size: size}, &shelf{}
		d := New(agent, sessions, sessions, stores, slog.New(slog.DiscardHandler), func(string) {})
		export, _, err := d.Export(t.Context(), session.Request{}, client.ExportRequest{Path: "f"})
		if kept != (err == nil) || kept != (len(stores.puts) == 1) || !kept && !errors.Is(err, client.ErrBadAnswer) {
			t.Errorf("%d bytes: %v, kept %v; want kept %v", size, err, stores.puts, kept)
		}
		if kept && (export == nil || export.ExpiresIn != 59 || export.Handle.Store != "archive") {
			t.Errorf("%d bytes: %+v, want what the store said of it", size, export)
		}
		if agent.drops != 1 {
			t.Errorf("%d bytes: the agent was asked to drop %d times", size, agent.drops)
		}
	}
}

// An agent that still holds an export is told of, in words that are true whether
// the store has it or not.
func TestAnAgentThatForgetsNoExportIsLogged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		full, broken error
		logged       bool
	}{
		"kept, and not forgotten":   {nil, errors.New("it broke"), true},
		"no room, nor forgotten":    {errors.New("is full"), errors.New("it broke"), true},
		"kept, and forgotten since": {nil, client.ErrNotFound, false},
		"kept, and forgotten":       {nil, nil, false},
	} {
		sessions := newOne()
		rec := *sessions.rec
		rec.ArtifactStore = "archive"
		sessions.set(&rec)
		var log strings.Builder
		d := New(&exporter{size: 1, broken: tc.broken}, sessions, sessions, &shelf{full: tc.full}, slog.New(slog.NewTextHandler(&log, nil)), func(string) {})
		if _, _, err := d.Export(t.Context(), session.Request{}, client.ExportRequest{Path: "f"}); (err == nil) != (tc.full == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Contains(log.String(), "Agent did not forget an export"); got != tc.logged || strings.Contains(log.String(), "in its store") {
			t.Errorf("%s: log %q", name, log.String())
		}
	}
}
