// Package detached keeps commands that outlive the call that sent them, and their
// results (docs/adr/0018-tasks-live-in-the-pod.md).
//
// Whoever knows a command's id learns how it is, from any connection. Results are
// on disk, in files without a name: memory counts against the container's limit.
// They are bounded in number, bytes and time, and the oldest makes room.
package detached
