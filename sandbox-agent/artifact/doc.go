// Package artifact takes files of the workspace, and archives of directories, and
// holds them for reading: a copy with its SHA-256 up to 8 MiB, above a reflink, or
// the file itself (docs/adr/0011-copied-and-pinned-artifacts.md).
package artifact
