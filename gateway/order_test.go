package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway"
)

// What a request passes comes in one order: of two reasons to refuse it, the outer
// one is told, and what is behind it isn't asked.
func TestOrderOfWhatARequestPasses(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(" ", 4<<20+1)
	for name, tc := range map[string]struct {
		host, origin, token, body string
		status                    int
		code                      string
		audited                   bool
	}{
		"limit, then host":            {"evil.example", "", "alice", large, http.StatusRequestEntityTooLarge, "too_large", false},
		"host, then origin":           {"evil.example", "https://evil.example", "", "{}", http.StatusForbidden, "host_not_allowed", false},
		"origin, then authentication": {"berth.example", "https://evil.example", "", "{}", http.StatusForbidden, "origin_not_allowed", false},
		"audit, then authentication":  {"berth.example", "", "", "{}", http.StatusUnauthorized, "unauthenticated", true},
		"authentication, then a body": {"berth.example", "", "", "[", http.StatusUnauthorized, "unauthenticated", true},
		"a body, then MCP":            {"berth.example", "", "alice", "{", http.StatusBadRequest, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			s := newStack(t, api, func(o *gateway.Options) { o.AllowedHosts = []string{"berth.example"} })
			resp, answer := s.do(http.MethodPost, "/mcp", tc.token, strings.NewReader(tc.body), func(r *http.Request) {
				toolHeaders("2025-11-25", "s")(r)
				r.Host = tc.host
				if tc.origin != "" {
					r.Header.Set("Origin", tc.origin)
				}
			})
			if resp.StatusCode != tc.status || !strings.Contains(answer, tc.code) {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, answer, tc.status, tc.code)
			}
			if audited := strings.Contains(s.log.String(), `"msg":"Request refused"`); audited != tc.audited {
				t.Errorf("audited: %v, want %v", audited, tc.audited)
			}
			if _, _, _, reviews := api.counts(); tc.status != http.StatusBadRequest && reviews != 0 {
				t.Errorf("the API server was asked %d times", reviews)
			}
		})
	}
}
