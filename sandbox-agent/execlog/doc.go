// Package execlog keeps the whole output of commands whose results can't carry
// it (docs/adr/0012-whole-output-in-log-files.md): one file for each stream,
// byte by byte, in .berth/logs under the workspace, where commands can search
// it, and readable as an artifact.
//
// The workspace is the session's. Whatever stands in the place of the
// directory, nothing is followed out of the workspace, nothing blocks, and no
// file is written or removed that this package didn't make. A file is read
// through the descriptor that it was written through, so that it stays readable
// when a command unlinks it.
package execlog
