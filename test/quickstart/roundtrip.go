package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/test/session"
)

// roundTrip sends a file into the session, has a command work on it, and takes it
// out again.
func roundTrip(ctx context.Context, target session.Target, sess *session.Session, s *steps) error {
	content := make([]byte, 1<<20)
	rand.Read(content) // never fails (crypto/rand)
	file, err := session.Upload(ctx, target, "my data.bin", bytes.NewReader(content))
	if err != nil {
		return err
	}
	s.done("Uploaded a file of this machine into the session", fmt.Sprintf("POST /sessions/%s/files?name=my+data.bin", target.ID),
		fmt.Sprintf("%s, %d bytes", file.Path, file.Size))
	there, err := bash(ctx, sess, s, "Found it there", "sha256sum "+file.Path)
	if err != nil {
		return err
	}
	if _, err := bash(ctx, sess, s, "Worked on it",
		fmt.Sprintf("gzip -c %s > data.gz && gunzip -c data.gz > data.bin && stat -c '%%n: %%s bytes' data.gz data.bin", file.Path)); err != nil {
		return err
	}
	artifact, err := sess.Export(ctx, "data.bin")
	if err != nil {
		return err
	}
	s.done("Exported the outcome", artifact.URI)
	read, err := sess.Read(ctx, artifact.URI)
	if err != nil {
		return err
	}
	s.done("Read it back as an MCP resource", fmt.Sprintf("%d bytes", len(read)))
	return compare(s, read, sum(content), strings.Fields(there)[0], artifact.SHA256)
}
