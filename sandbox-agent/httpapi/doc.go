// Package httpapi is the agent's HTTP surface (docs/agent.md). It is strict:
// what is malformed, too large, of the wrong method or not signed for is
// refused with a JSON error before anything runs.
package httpapi
