// Package upload takes files into a session's workspace, below uploads.
//
// A file is written under a hidden name and appears under its own once it is
// whole: one that fails, for whatever reason, leaves nothing. What lies there
// already is never overwritten, and no link is followed on the way.
package upload
