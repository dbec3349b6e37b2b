package standalone

import (
	"fmt"
	"net"
)

const welcome = `
Berth serves sessions on this machine at %[1]s/mcp. Ctrl-C ends it and them.

THIS IS NO SECURITY BOUNDARY: commands run as you, with your files and network.

    curl -sN %[1]s/mcp -H 'X-Session-ID: demo' \
      -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
      -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"echo hello from $PWD"}}}'

An MCP client's configuration:

    {"mcpServers": {"berth": {"type": "http", "url": "%[1]s/mcp", "headers": {"X-Session-ID": "demo"}}}}

`

// Welcome says how the gateway at address is used, whose scheme is http or https.
func (s *Sessions) Welcome(scheme string, address net.Addr) {
	if _, err := fmt.Fprintf(s.options.Out, welcome, scheme+"://"+address.String()); err != nil {
		s.options.Log.Warn("How to use the gateway could not be printed", "error", err)
	}
}
