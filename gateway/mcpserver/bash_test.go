package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wireSize is what the SDK makes of a result, without the few bytes around it.
func FuzzWireSize(f *testing.F) {
	f.Add("plain")
	f.Add("<&>\"\\\n\x00\u2028é\xff")
	empty := marshalled(f, json.RawMessage(`""`))
	f.Fuzz(func(t *testing.T, s string) {
		out, err := encode(s)
		if err != nil {
			t.Fatal(err)
		}
		want := marshalled(t, out) - empty + wireSize(json.RawMessage(`""`))
		if got := wireSize(out); got != want {
			t.Errorf("wireSize(%s) = %d, the SDK makes %d", out, got, want)
		}
	})
}

func marshalled(t testing.TB, out json.RawMessage) int {
	t.Helper()
	data, err := json.Marshal(&mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(out)}},
		StructuredContent: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}
