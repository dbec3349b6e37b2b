package gateway_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// R33: what isn't there takes the same questions by each way of MCP as by HTTP, so
// time doesn't tell it apart either: an agent is asked once, and only of a session
// that the caller may use; whether another's session is there is never looked up.
func TestNotFoundAsksAlikeInEachWay(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool { return s.ResourceAttributes.Name != "forbidden" }
	mine, bobs, bare := newAgent(t, "pod-1"), newAgent(t, "pod-2"), newAgent(t, "pod-4")
	for _, a := range []*fakeAgent{mine, bobs, bare} {
		a.artifacts[artifactID] = fakeArtifact{"f", "text/plain", []byte("x")}
		a.session = &client.Session{}
	}
	api.put(t, readyOn(newSandbox("s", "alice"), mine))
	api.put(t, readyOn(newSandbox("bobs", "bob"), bobs))
	api.put(t, readyOn(newSandbox("forbidden", "alice"), bare))
	s := newStack(t, api, nil)
	asked := func() [4]int64 { // without reviews: what a caller may is remembered
		_, reads, _, _ := api.counts()
		return [4]int64{int64(reads), mine.requests.Load(), bobs.requests.Load(), bare.requests.Load()}
	}
	if resp, body := s.do("GET", "/artifacts/sandboxes.s."+artifactID, "alice", nil, nil); resp.StatusCode != 200 || body != "x" {
		t.Fatalf("%d %s, want the artifact", resp.StatusCode, body)
	}
	for _, era := range eras {
		for way, ask := range map[string]func(c *mcp.ClientSession, uri string) bool{
			"resources/read": func(c *mcp.ClientSession, uri string) bool {
				_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				return err != nil
			},
			"read_artifact": func(c *mcp.ClientSession, uri string) bool {
				return call(t, c, "read_artifact", object{"uri": uri}).IsError
			},
		} {
			for token, want := range map[string][4]int64{
				"sandboxes.s." + strings.Repeat("1", 32): {0, 1}, "sandboxes.bobs." + artifactID: {}, "sandboxes.absent." + artifactID: {},
				"kube-system.s." + artifactID: {}, "sandboxes.forbidden." + artifactID: {}, "x": {}, "sandboxes.s.0f": {},
			} {
				for header, want := range map[string][4]int64{"": want, "other": {}} {
					c := s.connect(era, "alice", header)
					before := asked()
					if !ask(c, "artifact://berth/"+token) {
						t.Errorf("%s %s: %s was read", era, way, token)
					}
					after := asked()
					for i := range after {
						after[i] -= before[i]
					}
					if after != want {
						t.Errorf("%s %s of %s, X-Session-ID %q: API server and agents asked %v times, want %v", era, way, token, header, after, want)
					}
				}
			}
		}
	}
}
