package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Bounds of a tree.
const (
	// MaxEntries is how many files, directories and links one may hold.
	MaxEntries = 200_000
	// MaxDepth is how many directories may lie in each other: each is open while
	// what is in it is read.
	MaxDepth = 256
	// MaxPath is how long a path in an archive may be, in bytes. Programs that
	// extract it can't make a longer one.
	MaxPath = 4095
	// maxNames bounds the names that are held, in bytes: those of a directory are
	// read as a whole, to be sorted.
	maxNames = 16 << 20
)

// What a tree is refused with.
var (
	ErrEntries = fmt.Errorf("the directory holds more than %d entries, or too many long names: export a part of it", MaxEntries)
	ErrDepth   = fmt.Errorf("the directory is more than %d directories deep, or holds a path of more than %d bytes: export a part of it", MaxDepth, MaxPath)
	ErrBytes   = errors.New("the files take more room than an archive may hold before it is compressed: export a part of it")
	// ErrShrank: what was announced of a file can't be kept any more.
	ErrShrank = errors.New("a file lost bytes while it was archived: export it again when nothing writes to it")
)

// Options of an archive.
type Options struct {
	// Name is what the top is called.
	Name string
	// Bytes is how much the contents of all files may take together.
	Bytes int64
	// Omit, if set, tells which names directly below the top are left out.
	Omit func(name string) bool
}

// Write writes top, a directory or a regular file, to w. It reads top to its end.
// It returns one of this package's errors, ctx's, w's, or one of reading.
func Write(ctx context.Context, w io.Writer, top *os.File, o Options) (Report, error) {
	return write(ctx, w, top, o, bounds{entries: MaxEntries, depth: MaxDepth, names: maxNames})
}

func write(ctx context.Context, w io.Writer, top *os.File, o Options, b bounds) (Report, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &st); err != nil {
		return Report{}, fmt.Errorf("stat: %w", err)
	}
	zipped := gzip.NewWriter(w)
	k := &walk{ctx: ctx, tar: tar.NewWriter(zipped), omit: o.Omit, buffer: make([]byte, bufferSize), bounds: b, left: o.Bytes}
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = k.directory(top, &st, o.Name, 1)
	} else {
		err = k.file(top, &st, o.Name)
	}
	if err != nil {
		return Report{}, err
	}
	if err := k.tar.Close(); err != nil {
		return Report{}, err
	}
	return k.report, zipped.Close()
}
