//go:build fixtures

package mcpserver

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/mcpserver/fixtures"
)

// extend declares what this build offers more.
func extend(o *mcp.ServerOptions) { fixtures.Extend(o) }

// addFixtures adds what the conformance suite calls by name.
func (s *Server) addFixtures(server *mcp.Server) {
	fixtures.Add(server)
	s.serveTasks(server, fixtures.AddTasks(server, s.tasks))
}

// isFixture says whether a resource is one that addFixtures added.
func isFixture(uri string) bool { return fixtures.Resource(uri) }
