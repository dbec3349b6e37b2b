// Package tasks is MCP's Tasks extension (io.modelcontextprotocol/tasks, SEP-2663,
// schema of 2026-07-28): a tool's call that is answered with a handle, by which its
// client asks for the result.
//
// The package knows the wire, and nothing of where tasks live: a Source does
// (docs/adr/0018-tasks-live-in-the-pod.md).
package tasks
