package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// BenchmarkBash is a live call through the gateway to an agent that answers at
// once: what the gateway adds. Compare with BenchmarkStockServer, the SDK's own
// server with a tool that does nothing.
func BenchmarkBash(b *testing.B) {
	t := &testing.T{}
	api := newAPI(t)
	fa := newAgent(t, "pod")
	api.put(t, readyOn(newSandbox("bench", "alice"), fa))
	s := newStack(t, api, nil)
	for _, era := range eras {
		b.Run(era, func(b *testing.B) {
			benchmark(b, era, s.url+"/mcp", http.Header{"Authorization": {"Bearer alice"}, "X-Session-Id": {"bench"}}, "bash", map[string]any{"command": "true"})
		})
	}
}

// BenchmarkLive is a live call through the gateway to a real agent on loopback.
// With -cpuprofile it shows where the gateway's time goes: samples of the client,
// which is in this process too, carry the label "client".
func BenchmarkLive(b *testing.B) {
	program, err := localagent.Build(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	a, err := localagent.Start(b.Context(), localagent.Options{Program: program, Workspace: b.TempDir(), Environ: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Stop()
	t := &testing.T{}
	api := newAPI(t)
	setSigningKey(b, api, a.Key)
	sandbox := readyOn(newSandbox("bench", "alice"), &fakeAgent{audience: a.Pod.Namespace + "/" + a.Pod.UID, ip: a.Pod.IP.String()})
	sandbox.Status.KeyID = localagent.KeyID
	api.put(t, sandbox)
	s := newStackFor(t, api, agent.Options{Port: a.Port, AllowLoopback: true}, nil)
	defer s.stop()
	era := eras[len(eras)-1]
	pprof.Do(b.Context(), pprof.Labels("client", era), func(context.Context) {
		benchmark(b, era, s.url+"/mcp", http.Header{"Authorization": {"Bearer alice"}, "X-Session-Id": {"bench"}}, "bash", map[string]any{"command": "true"})
	})
}

// setSigningKey makes key the only one that the gateway signs with.
func setSigningKey(b testing.TB, api *fakeAPI, key []byte) {
	o := defaults()
	var secret corev1.Secret
	err := api.inner.Get(b.Context(), client.ObjectKey{Namespace: o.KeyNamespace, Name: o.KeyName}, &secret)
	if err == nil {
		secret.Data = map[string][]byte{localagent.KeyID + ".pem": key}
		err = api.inner.Update(b.Context(), &secret)
	}
	if err != nil {
		b.Fatalf("set the signing key: %v", err)
	}
}

// BenchmarkStockServer is the yardstick of BenchmarkBash.
func BenchmarkStockServer(b *testing.B) {
	server := mcp.NewServer(&mcp.Implementation{Name: "stock", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "noop"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	stock := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer stock.Close()
	for _, era := range eras {
		b.Run(era, func(b *testing.B) { benchmark(b, era, stock.URL, nil, "noop", nil) })
	}
}

func benchmark(b *testing.B, era, url string, h http.Header, tool string, arguments any) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: headers{h, &http.Transport{MaxIdleConnsPerHost: 16}}}, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	for b.Loop() {
		result, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil || result.IsError {
			b.Fatalf("call: %+v %v", result, err)
		}
	}
}
