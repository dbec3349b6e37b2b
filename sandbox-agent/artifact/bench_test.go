package artifact

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// BenchmarkTake is the export of the largest file that is copied.
func BenchmarkTake(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), noise(wire.CopiedArtifact), 0o600); err != nil {
		b.Fatal(err)
	}
	s, err := NewStore(dir, []string{dir}, SystemClock{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(wire.CopiedArtifact)
	for b.Loop() {
		a, err := s.Take(b.Context(), Request{Path: "f", Limit: wire.CopiedArtifact, Total: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Drop(a.ID); err != nil {
			b.Fatal(err)
		}
	}
}
