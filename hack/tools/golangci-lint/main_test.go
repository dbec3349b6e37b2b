package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test binary is the linter: run again with this set, it lints.
const runAsLinter = "BERTH_TEST_RUN_AS_LINTER"

func TestMain(m *testing.M) {
	if os.Getenv(runAsLinter) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const module = "github.com/berth-dev/berth"

// walls says for a file of the product what it may not import, and what it may.
var walls = []struct{ file, imports, refused string }{
	{"api/v1alpha1/a.go", "k8s.io/api/core/v1", ""},
	{"api/v1alpha1/b.go", "k8s.io/apimachinery/pkg/runtime", ""},
	{"api/v1alpha1/c.go", "k8s.io/client-go/rest", "api"},
	{"api/v1alpha1/d.go", module + "/controllers", "api"},
	{"api/v1alpha1/e.go", "sigs.k8s.io/controller-runtime", "api"},
	{"sandbox-agent/shell/a.go", module + "/sandbox-agent/wire", ""},
	{"sandbox-agent/shell/b.go", "k8s.io/api/core/v1", "agent"},
	{"sandbox-agent/shell/c.go", "sigs.k8s.io/controller-runtime", "agent"},
	{"sandbox-agent/shell/d.go", module + "/api/v1alpha1", "agent"},
	{"sandbox-agent/shell/e.go", module + "/gateway", "agent"},
	{"sandbox-agent/shell/f.go", module + "/controllers", "agent"},
	{"controllers/sandbox/a.go", module + "/sandbox-agent/client", ""},
	{"controllers/sandbox/b.go", module + "/sandbox-agent/wire", "controllers"},
	{"controllers/sandbox/c.go", module + "/gateway", "controllers"},
	{"gateway/session/a.go", module + "/sandbox-agent/client", ""},
	{"gateway/session/b.go", module + "/sandbox-agent/wire", "gateway"},
	{"gateway/session/c.go", module + "/controllers", "gateway"},
	{"cmd/controller/a.go", module + "/gateway", "controllers"},
	{"cmd/gateway/a.go", module + "/controllers", "gateway"},
	{"gateway/session/d.go", module + "/test", "product"},
	{"controllers/sandbox/d.go", "github.com/onsi/gomega", "product"},
	{"controllers/sandbox/e_test.go", "github.com/onsi/gomega", ""},
	{"gateway/session/e.go", "github.com/pkg/errors", "everywhere"},
	{"gateway/artifactstore/a.go", "github.com/minio/minio-go/v7", ""},
	{"gateway/dispatch/a.go", "github.com/minio/minio-go/v7", "stores"},
	{"gateway/dispatch/b_test.go", "github.com/minio/minio-go/v7", ""},
	{"cmd/gateway/b.go", "github.com/minio/minio-go/v7", "stores"},
	{"gateway/tracing/a.go", "go.opentelemetry.io/otel/sdk/trace", ""},
	{"gateway/mcpserver/c.go", "go.opentelemetry.io/otel/sdk/trace", "otel-sdk"},
	{"gateway/mcpserver/d.go", "go.opentelemetry.io/otel/trace", ""},
}

func TestEachImportWallBites(t *testing.T) {
	t.Parallel()
	root := fixture(t)
	got := lint(t, root)
	for _, wall := range walls {
		finding := got[wall.file]
		switch {
		case wall.refused == "" && finding != "":
			t.Errorf("%s imports %s: refused (%s), want it allowed", wall.file, wall.imports, finding)
		case wall.refused != "" && !strings.Contains(finding, fmt.Sprintf("from list '%s'", wall.refused)):
			t.Errorf("%s imports %s: lint says %q, want it refused by the wall %q", wall.file, wall.imports, finding, wall.refused)
		}
	}
}

// fixture writes a module of one file for each wall, with the project's own
// .golangci.yml at its root. Modules from outside are stubs beside it.
func fixture(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	config, err := os.ReadFile("../../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, ".golangci.yml"), string(config))

	mod := "module " + module + "\n\ngo 1.26\n"
	stubs := map[string][]string{
		"k8s.io/api": {"core/v1"}, "k8s.io/apimachinery": {"pkg/runtime"}, "k8s.io/client-go": {"rest"},
		"sigs.k8s.io/controller-runtime": {""}, "github.com/onsi/gomega": {""}, "github.com/pkg/errors": {""},
		"github.com/minio/minio-go/v7": {""},
	}
	for path, packages := range stubs {
		version := "v0.0.0"
		if strings.HasSuffix(path, "/v7") {
			version = "v7.0.0"
		}
		mod += fmt.Sprintf("require %s %s\nreplace %s => ./stubs/%s\n", path, version, path, path)
		write(t, filepath.Join(root, "stubs", path, "go.mod"), "module "+path+"\n\ngo 1.26\n")
		for _, pkg := range packages {
			write(t, filepath.Join(root, "stubs", path, pkg, "stub.go"), "package stub\n")
		}
	}
	write(t, filepath.Join(root, "go.mod"), mod)
	for _, pkg := range []string{"api/v1alpha1", "controllers", "gateway", "sandbox-agent/client", "sandbox-agent/wire", "test"} {
		write(t, filepath.Join(root, pkg, "stub.go"), "package stub\n")
	}
	for _, wall := range walls {
		write(t, filepath.Join(root, wall.file), fmt.Sprintf("package stub\n\nimport _ %q\n", wall.imports))
	}
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lint runs depguard alone and gives what it says, by file.
func lint(t *testing.T, root string) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "run", "--enable-only=depguard", "--output.json.path=stdout", "--show-stats=false", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), runAsLinter+"=1", "GOFLAGS=-mod=mod", "GOLANGCI_LINT_CACHE="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("golangci-lint: %v\n%s%s", err, output, stderr.String())
	}
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct{ Filename string }
		}
	}
	if err := json.NewDecoder(bytes.NewReader(output)).Decode(&report); err != nil {
		t.Fatalf("golangci-lint's report: %v\n%s%s", err, output, stderr.String())
	}
	found := map[string]string{}
	for _, issue := range report.Issues {
		if issue.FromLinter != "depguard" {
			t.Errorf("%s: %s: %s", issue.Pos.Filename, issue.FromLinter, issue.Text)
		}
		found[issue.Pos.Filename] += issue.Text + "\n"
	}
	return found
}
