// Package process deals with processes that outlive the command that started
// them: locks, identities that survive the reuse of process IDs, and the
// supervisor that is PID 1 of a node.
package process
