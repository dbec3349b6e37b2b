package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.StreamableClientTransport{
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
