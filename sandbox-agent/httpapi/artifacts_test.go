package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/wire"
	"github.com/berth-dev/berth/test/clock"
)

// cut is a connection that ends before an answer is out.
type cut struct{ *httptest.ResponseRecorder }

func (cut) FlushError() error { return errors.New("the connection is gone") }

// An artifact whose id nobody was told takes no slot.
func TestAnExportThatNobodyLearnsOfTakesNoSlot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := artifact.NewStore(dir, []string{t.TempDir()}, clock.New())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s, _ := fixture(t, anyone{})
	s.artifacts = store
	export := func(ctx context.Context, w http.ResponseWriter) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, wire.ArtifactsPath, strings.NewReader(`{"path":"f"}`))
		r.Header.Set("Content-Type", contentJSON)
		s.ServeHTTP(w, r)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range wire.MaxArtifacts {
		w := httptest.NewRecorder()
		if export(gone, w); w.Code != 408 {
			t.Fatalf("a caller that is gone: %d %s", w.Code, w.Body)
		}
		export(t.Context(), cut{httptest.NewRecorder()})
	}
	for range wire.MaxArtifacts {
		w := httptest.NewRecorder()
		if export(t.Context(), w); w.Code != 201 {
			t.Fatalf("after them: %d %s", w.Code, w.Body)
		}
	}
}
