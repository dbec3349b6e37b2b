//go:build !fixtures

package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

// extend, addFixtures and isFixture are what package fixtures has for a build that
// the conformance suite runs against. In this one there is nothing more.
func extend(*mcp.ServerOptions) {}

func (s *Server) addFixtures(*mcp.Server) {}

func isFixture(string) bool { return false }
