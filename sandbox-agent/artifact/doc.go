// Package artifact takes files of the workspace and holds them for reading: a
// copy with its SHA-256 up to 8 MiB, a pinned descriptor above
// (docs/adr/0011-copied-and-pinned-artifacts.md).
package artifact
