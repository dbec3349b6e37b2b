//go:build conformance

package gateway_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// By default Node waits 300 s for headers, and as long for each piece of a body.
var (
	nodeLimit = flag.Duration("node-limit", 2*time.Second, "how long Node waits for headers, and for each piece of a body")
	silence   = flag.Duration("silence", 5*time.Second, "how long a command says nothing")
)

// A command that is silent for longer than Node waits gives its result to a client
// on Node, for headers leave early and comments follow. Without them it would not.
func TestNodeOutwaitsASilentCommand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flush time.Duration
		want  string
	}{
		"kept alive": {min(10*time.Second, *nodeLimit/4), `\"stdout\":\"late\\n\"`},
		"silent":     {time.Hour, "UND_ERR_HEADERS_TIMEOUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := callFromNode(t, silentGateway(t, tc.flush))
			if !strings.Contains(out, tc.want) {
				t.Errorf("Node got %s, want %s", out, tc.want)
			}
		})
	}
}

// silentGateway has a session whose commands say nothing for so long.
func silentGateway(t *testing.T, flush time.Duration) (address string) {
	t.Helper()
	api := newAPI(t)
	fa := newAgent(t, "pod-1")
	fa.exec = func(w http.ResponseWriter, r *http.Request, _ client.ExecRequest) {
		over := time.NewTimer(*silence)
		defer over.Stop()
		select {
		case <-r.Context().Done(): // Node has given up
		case <-over.C:
			agentJSON(w, client.ExecResult{Stdout: "late\n"})
		}
	}
	sandbox := readyOn(newSandbox("s", "alice"), fa)
	longest := berthv1alpha1.Duration("10m")
	sandbox.Status.Limits = &berthv1alpha1.Limits{CommandTimeout: &longest, MaxCommandTimeout: &longest}
	api.put(t, sandbox)
	return newStack(t, api, func(o *gateway.Options) { o.FlushAfter, o.KeepAlive = flush, flush }).url
}

// callFromNode calls bash with Node's own HTTP client and gives what it wrote.
func callFromNode(t *testing.T, address string) string {
	t.Helper()
	program, err := filepath.Abs("../test/conformance/silent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs(suite)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *silence+time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, node(modules), program, address+"/mcp", fmt.Sprint(nodeLimit.Milliseconds()), bashBody(eras[0], "make"))
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run Node: %v", err)
	}
	return string(out)
}
