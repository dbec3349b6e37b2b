package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// surfaces are the ways to read an artifact, each as a request of the wire.
var surfaces = map[string]func(ctx context.Context, address, uri string) (*http.Request, error){
	"resources/read, old era": readResource(session.Legacy),
	"resources/read, new era": readResource(session.Modern),
	"read_artifact, old era":  readByTool(session.Legacy),
	"read_artifact, new era":  readByTool(session.Modern),
	"GET":                     getArtifact(http.MethodGet),
	"HEAD":                    getArtifact(http.MethodHead),
}

func readResource(era string) func(ctx context.Context, address, uri string) (*http.Request, error) {
	return func(ctx context.Context, address, uri string) (*http.Request, error) {
		return message(ctx, address, era, "resources/read", uri, map[string]any{"uri": uri})
	}
}

func readByTool(era string) func(ctx context.Context, address, uri string) (*http.Request, error) {
	return func(ctx context.Context, address, uri string) (*http.Request, error) {
		const tool = "read_artifact"
		return message(ctx, address, era, "tools/call", tool, map[string]any{"name": tool, "arguments": map[string]any{"uri": uri}})
	}
}

// message is an MCP request. name is what it is about, which the new era has in a
// header too.
func message(ctx context.Context, address, era, method, name string, params map[string]any) (*http.Request, error) {
	if era == session.Modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": era, "Mcp-Method": method, "Mcp-Name": name,
	} {
		request.Header.Set(header, value)
	}
	return request, nil
}

func getArtifact(method string) func(ctx context.Context, address, uri string) (*http.Request, error) {
	return func(ctx context.Context, address, uri string) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, method, "http://"+address+"/artifacts/"+strings.TrimPrefix(uri, session.URIPrefix), nil)
	}
}

// answers asks each surface for an artifact, and gives the answers as they came:
// status, header and body, but for the time, the URI and what depends on its length.
func answers(ctx context.Context, target session.Target, uri string) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for surface, request := range surfaces {
		request, err := request(ctx, target.Address, uri)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer "+target.Token)
		if target.ID != "" {
			request.Header.Set(session.Header, target.ID)
		}
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		answer := response.Status + "\n"
		for _, name := range slices.Sorted(maps.Keys(response.Header)) {
			if name != "Date" && name != "Content-Length" && name != "X-Request-Id" {
				answer += fmt.Sprintln(name, response.Header[name])
			}
		}
		all[surface] = answer + strings.ReplaceAll(string(body), uri, "URI")
	}
	return all
}

var _ = Describe("An artifact that can't be had", func() {
	It("is answered like one that there never was, in the same bytes, whatever the reason", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, makeFile)
		run(ctx, connect(ctx, t.target("other")), "true")
		export := func() string {
			artifact, err := s.Export(ctx, "file.bin")
			Expect(err).NotTo(HaveOccurred())
			return artifact.URI
		}
		uri, dropped := export(), export()
		a := t.agentAt(ctx, "s")
		Expect(a.DropArtifact(ctx, a.pod, dropped[strings.LastIndex(dropped, ".")+1:])).To(Succeed())
		owner, stranger, foreign := t.target(""), t.target(""), t.target("other")
		stranger.Token = t.newCaller(ctx, "stranger")
		for surface, answer := range answers(ctx, owner, uri) {
			Expect(answer).To(HavePrefix("200 OK\n"), "%s: it must be there, not to be there for others", surface)
		}
		random := uri[:strings.LastIndex(uri, ".")+1] + strings.Repeat("1", 32)
		want := answers(ctx, owner, random)
		Expect(want["GET"]).To(HavePrefix("404 Not Found\n"))
		for _, era := range []string{"old", "new"} {
			Expect(want["resources/read, "+era+" era"]).To(ContainSubstring("Resource not found"))
			Expect(want["read_artifact, "+era+" era"]).To(ContainSubstring(`"isError":true`))
		}

		for reason, c := range map[string]struct {
			target session.Target
			uri    string
		}{
			"another session's header":        {foreign, uri},
			"another caller":                  {stranger, uri},
			"another caller, a random token":  {stranger, random},
			"dropped":                         {owner, dropped},
			"a session that there isn't":      {owner, strings.Replace(uri, ".s.", ".none.", 1)},
			"another caller's namespace":      {owner, strings.Replace(uri, t.namespace, "kube-system", 1)},
			"malformed: no token":             {owner, session.URIPrefix + "x"},
			"malformed: upper case":           {owner, uri[:len(uri)-32] + strings.ToUpper(uri[len(uri)-32:len(uri)-1]) + "G"},
			"malformed: too long":             {owner, uri + "0"},
			"malformed: dots":                 {owner, uri + ".."},
			"malformed: much":                 {owner, session.URIPrefix + strings.Repeat("a", 2000)},
			"another session's, and random":   {foreign, random},
			"a session that has none":         {owner, strings.Replace(uri, ".s.", ".other.", 1)},
			"another caller, nothing of his":  {stranger, session.URIPrefix + "x"},
			"another caller, session unknown": {stranger, strings.Replace(uri, ".s.", ".none.", 1)},
		} {
			Expect(answers(ctx, c.target, c.uri)).To(Equal(want), reason)
		}

		Expect(session.End(ctx, t.target("s"))).To(Equal(http.StatusNoContent))
		Expect(answers(ctx, owner, uri)).To(Equal(want), "its session was deleted")
		run(ctx, connect(ctx, t.target("s")), "true")
		Expect(answers(ctx, owner, uri)).To(Equal(want), "its session was deleted, and there is another one of its name")
	}, SpecTimeout(specTimeout))
})
