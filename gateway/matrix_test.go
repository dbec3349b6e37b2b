package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// What the matrix's cells say.
const (
	okay       = "ok"
	notAllowed = "sandbox exec failed: not allowed: the caller needs a role that grants this verb on sandboxes/session in the session's namespace"
	notYours   = "sandbox exec failed: session not available"
	noArtifact = "artifact read failed: artifact not found"
	noResource = "Resource not found"
	noUpload   = "403 forbidden"
	notUploads = "403 not_available"
	noDownload = "404 not_found"
	noDelete   = "403 forbidden"
	itsGone    = "204 deleted"
	notDeleted = "204"
	unknown    = "401 unauthenticated"
	absent     = "absent"
	ownerless  = "ownerless"
	own        = "own"
	others     = "others"
)

// matrixRoles gives each caller its verbs in the namespace sandboxes; service
// accounts have all in their own, and nothing here.
func matrixRoles(alice string) func(authorizationv1.SubjectAccessReviewSpec) bool {
	verbs := map[string]string{
		"alice": "create get delete", alice: "create get delete",
		"carol": "get", "dave": "create", "bob": "delete", "erin": "",
	}
	return func(s authorizationv1.SubjectAccessReviewSpec) bool {
		a := s.ResourceAttributes
		if strings.HasPrefix(s.User, "system:serviceaccount:"+a.Namespace+":") {
			return true
		}
		return a.Namespace == "sandboxes" && a.Resource == "sandboxes" && a.Subresource == "session" && strings.Contains(verbs[s.User], a.Verb)
	}
}

// R18: callers by sessions by verbs by routes, each cell exactly.
func TestMatrixOfCallersAndSessions(t *testing.T) {
	t.Parallel()
	url, token := newIssuer(t)
	alice := "oidc:" + url + "#alice"
	type cells struct{ tool, upload, resource, artifact, download, end string }
	may := cells{okay, "201", okay, okay, "200", itsGone}
	forbidden := cells{notAllowed, noUpload, noResource, noArtifact, noDownload, noDelete}
	foreign := cells{notYours, notUploads, noResource, noArtifact, noDownload, notDeleted}
	made := cells{okay, "201", noResource, noArtifact, noDownload, itsGone} // its artifacts are none
	reads := cells{notAllowed, noUpload, okay, okay, "200", noDelete}
	runs := cells{okay, "201", noResource, noArtifact, noDownload, noDelete}
	ends := cells{notAllowed, noUpload, noResource, noArtifact, noDownload, itsGone}
	nobody := cells{unknown, unknown, unknown, unknown, unknown, unknown}
	runsForeign := foreign
	runsForeign.end = noDelete
	endsForeign := forbidden
	endsForeign.end = notDeleted
	all := func(c cells) map[string]cells { return map[string]cells{own: c, others: c, ownerless: c, absent: c} }
	callers := map[string]struct {
		token, name, namespace string
		sessions               map[string]cells
	}{
		"all verbs":              {"alice", "alice", "", map[string]cells{own: may, others: foreign, ownerless: may, absent: made}},
		"all verbs, an issuer's": {token("alice"), alice, "", map[string]cells{own: may, others: foreign, ownerless: may, absent: made}},
		"get":                    {"carol", "carol", "", map[string]cells{own: reads, others: forbidden, ownerless: reads, absent: forbidden}},
		"create":                 {"dave", "dave", "", map[string]cells{own: runs, others: runsForeign, ownerless: runs, absent: runs}},
		"delete":                 {"bob", "bob", "", map[string]cells{own: ends, others: endsForeign, ownerless: ends, absent: endsForeign}},
		"no role":                {"erin", "erin", "", all(forbidden)},
		"an issuer's, no role":   {token("carol"), "oidc:" + url + "#carol", "", all(forbidden)},
		"a role elsewhere":       {"builder", users["builder"], "sandboxes", all(forbidden)},
		"unknown":                {"mallory", "mallory", "", all(nobody)},
		"no token":               {"", "", "", all(nobody)},
	}
	for name, caller := range callers {
		for session, want := range caller.sessions {
			t.Run(name+"/"+session, func(t *testing.T) {
				t.Parallel()
				api := newAPI(t)
				api.allowed = matrixRoles(alice)
				if session == absent {
					comesUp(t, api)
				} else {
					owner := map[string]string{own: caller.name, others: "somebody", ownerless: ""}[session]
					fa := newAgent(t, "pod")
					fa.session = &client.Session{}
					fa.artifacts[artifactID] = fakeArtifact{"f.txt", "text/plain", []byte("x")}
					api.put(t, readyOn(newSandbox(session, owner), fa))
				}
				s := newStack(t, api, withIssuer(url))
				h := map[string][]string{}
				if caller.namespace != "" {
					h["X-Sandbox-Namespace"] = []string{caller.namespace}
				}
				ask := func(method, path, body string, change func(*http.Request)) string {
					resp, answer := s.do(method, path, caller.token, strings.NewReader(body), choosing(h, change))
					if path == "/mcp" {
						return outcomeOf(t, resp, answer)
					}
					return httpOutcome(t, resp, answer)
				}
				mcp := func(r *http.Request) { mcpHeaders(r, eras[0]) }
				uri := artifactOf + session + "." + artifactID
				got := cells{
					tool:     s.tool(caller.token, session, h),
					upload:   ask("POST", "/sessions/"+session+"/files?name=f", "x", nil),
					resource: ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`, mcp),
					artifact: ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_artifact","arguments":{"uri":"`+uri+`"}}}`, mcp),
					download: ask("GET", "/artifacts/sandboxes."+session+"."+artifactID, "", nil),
				}
				before := api.sandbox(t, "sandboxes", session) != nil
				got.end = ask("DELETE", "/sessions/"+session, "", nil)
				if before && api.sandbox(t, "sandboxes", session) == nil {
					got.end += " deleted"
				}
				if got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
				if runs := want.tool == okay; session == absent && before != runs {
					t.Errorf("the session was made: %v, want %v", before, runs)
				}
			})
		}
	}
}
