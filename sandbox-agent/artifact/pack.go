package artifact

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/archive"
	"github.com/berth-dev/berth/sandbox-agent/filename"
	"github.com/berth-dev/berth/sandbox-agent/spool"
)

const (
	// extension ends an archive's name, and archiveType is its type.
	extension   = ".tar.gz"
	archiveType = "application/gzip"
	// inflation is how many times an archive's limit its contents may take.
	inflation = 64
	// own is what the agent keeps in the workspace: no one's work.
	own = ".berth"
)

// archive takes what top is, at rel, as a .tar.gz of at most limit bytes.
func (e *export) archive(ctx context.Context, top *os.File, rel string, limit int64) (*item, error) {
	if err := e.store.turn(ctx); err != nil {
		return nil, err
	}
	defer e.store.done()
	f, err := spool.Create(e.store.spools)
	if err != nil {
		return nil, spaceError(err)
	}
	o := archive.Options{Name: filepath.Base(rel), Bytes: math.MaxInt64}
	if limit < math.MaxInt64/inflation {
		o.Bytes = limit * inflation
	}
	if rel == "." {
		o.Name = strings.Trim(filepath.Base(e.store.workspace), "/.")
		o.Omit = func(name string) bool { return name == own || spool.IsSpool(name) }
	}
	if o.Name == "" {
		o.Name = "workspace"
	}
	out := &packed{export: e, file: f, limit: limit, hash: sha256.New()}
	buffered := bufio.NewWriterSize(out, copyBuffer)
	report, err := archive.Write(ctx, buffered, top, o)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		f.Close()
		return nil, packError(err)
	}
	it := &item{file: f}
	it.Name, it.MIMEType, it.Size = archiveName(o.Name), archiveType, out.size
	it.SHA256, it.Notice = hex.EncodeToString(out.hash.Sum(nil)), report.String()
	return it, nil
}

// packed is an archive as it comes.
type packed struct {
	export *export
	file   *os.File
	limit  int64
	size   int64
	hash   hash.Hash
}

// Write implements io.Writer. It reserves what it writes.
func (p *packed) Write(b []byte) (int, error) {
	if int64(len(b)) > p.limit-p.size {
		return 0, ErrArchive
	}
	if err := p.export.reserve(int64(len(b)), p.file); err != nil {
		return 0, err
	}
	p.hash.Write(b)
	n, err := p.file.Write(b)
	p.size += int64(n)
	if err != nil {
		return n, spaceError(err)
	}
	return n, nil
}

// packError lets through what tells a caller something.
func packError(err error) error {
	if errors.Is(err, archive.ErrShrank) {
		return ErrChanged
	}
	return err
}

// archiveName is how an archive of what is called base is named.
func archiveName(base string) string {
	return filename.Cut(name(base), filename.Max-len(extension)) + extension
}
