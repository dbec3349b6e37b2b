package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkBash is a live call through the gateway to an agent that answers at
// once: what the gateway adds. Compare with BenchmarkStockServer, the SDK's own
// server with a tool that does nothing.
func BenchmarkBash(b *testing.B) {
	api := newAPI(b)
	api.put(b, readyOn(newSandbox("s", "alice"), newAgent(b, "pod")))
	s := newStack(b, api, nil)
	for _, era := range eras {
		b.Run(era, func(b *testing.B) {
			benchmark(b, era, s.url+"/mcp", http.Header{"Authorization": {"Bearer alice"}, "X-Session-Id": {"s"}}, "bash", map[string]any{"command": "true"})
		})
	}
}

// BenchmarkLive is a live call through the gateway to a real agent on loopback.
// With -cpuprofile it shows where the gateway's time goes: samples of the client,
// which is in this process too, carry the label "client".
func BenchmarkLive(b *testing.B) {
	l, _ := newReal(b)
	era := eras[len(eras)-1]
	pprof.Do(b.Context(), pprof.Labels("client", era), func(context.Context) {
		benchmark(b, era, l.url+"/mcp", http.Header{"Authorization": {"Bearer alice"}, "X-Session-Id": {"s"}}, "bash", map[string]any{"command": "true"})
	})
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
