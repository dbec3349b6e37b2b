//go:build linux

package standalone_test

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/test/s3server"
)

// Without templates exports go to the only store that is configured, and outlive
// their session there.
func TestExportsGoToTheOnlyStore(t *testing.T) {
	t.Parallel()
	s3, err := s3server.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s3.Stop)
	if err := s3.MakeBucket(t.Context(), "artifacts"); err != nil {
		t.Fatal(err)
	}
	g := start(t, temporary(t, os.Getuid()), os.Getuid(), "--artifact-stores="+configuration(t, s3, "archive"))
	g.bash("stored", "echo kept > f")
	uri := g.tool("stored", "export_artifact", map[string]any{"path": "f"}).StructuredContent.URI
	if status, _, err := g.http(http.MethodDelete, "/sessions/stored", "", "", ""); status != http.StatusNoContent || err != nil {
		t.Fatal(status, err)
	}
	if status, answer, err := g.http(http.MethodGet, "/artifacts/"+path.Base(uri), "", "", ""); err != nil || status != http.StatusOK || answer != "kept\n" {
		t.Errorf("%s: %d %q %v", uri, status, answer, err)
	}
}

func TestTwoStoresAreRefused(t *testing.T) {
	t.Parallel()
	s3 := &s3server.Server{Address: "127.0.0.1:1", CAFile: filepath.Join(t.TempDir(), "ca.pem"), AccessKey: "a", SecretKey: "s"}
	if err := s3server.WriteCertificates(filepath.Dir(s3.CAFile)); err != nil {
		t.Fatal(err)
	}
	tmp := temporary(t, os.Getuid())
	out, err := command(tmp, os.Getuid(), "--artifact-stores="+configuration(t, s3, "one", "two")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the file must define one store") {
		t.Errorf("%v: %s", err, out)
	}
	if names := left(t, tmp); len(names) > 0 {
		t.Errorf("it left %v", names)
	}
}

// configuration writes that of stores in one bucket, and returns the file.
func configuration(t *testing.T, s3 *s3server.Server, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	stores := "stores:\n"
	for _, name := range names {
		stores += fmt.Sprintf("- {name: %s, endpoint: 'https://%s', caFile: %s, region: %s, bucket: artifacts, prefix: %[1]s/, accessKeyFile: %[5]s/access, secretKeyFile: %[5]s/secret}\n",
			name, s3.Address, s3.CAFile, s3server.Region, dir)
	}
	for name, text := range map[string]string{"access": s3.AccessKey, "secret": s3.SecretKey, "stores.yaml": stores} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "stores.yaml")
}
