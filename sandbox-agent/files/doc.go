// Package files reads, writes, edits and lists files for a session's callers.
//
// # Paths
//
// A path is relative to the workspace, or absolute inside it or one of the roots
// that the session was bound with. It is cleaned as text, then walked from an open
// directory, one component at a time, with no link followed by the kernel: links
// are read, and followed as long as they stay inside, absolute ones too. That is
// for confused callers: a command in the sandbox can read what the agent can.
//
// Only regular files are opened, and no open blocks.
//
// # Writes
//
// A file is written under a hidden name beside it, ".<name>.write-<16 hex
// digits>", and renamed when it is whole: who reads it finds the one or the other,
// and a failure leaves nothing. A file that is there keeps its mode and, where the
// agent may, its owner; extended attributes it loses. A link is followed, and
// stays: what it names is replaced. Of a file with several names only this one
// gets the new content. What can't be written to is not replaced either.
//
// Nothing waits for the disk: a write is safe from a process that ends, not from
// a node that loses power, as is what a command writes.
package files
