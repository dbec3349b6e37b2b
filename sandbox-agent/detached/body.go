package detached

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/berth-dev/berth/sandbox-agent/spool"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// inMemory is the size up to which a result is kept in memory: a file takes more
// of it, and a descriptor.
const inMemory = 4 << 10

// body is an encoded result. The zero value is none.
type body struct {
	at   io.ReaderAt
	file *os.File // at, if that is one
	size int64
}

// unkept is the notice of a result whose output is lost.
const unkept = "The output could not be kept until it was asked for: there was no space on the disk."

// write encodes a result and keeps it. How a command ended is kept in any case.
func write(spools []string, result wire.ExecResult) body {
	encoded := wire.Encode(result)
	if len(encoded) <= inMemory {
		return memory(encoded)
	}
	file, err := spool.Create(spools)
	if err == nil {
		if _, err = file.WriteAt(encoded, 0); err == nil {
			return body{file, file, int64(len(encoded))}
		}
		file.Close()
	}
	result.OmittedBytes = result.StdoutBytes + result.StderrBytes
	result.Stdout, result.Stderr, result.Truncated = "", "", true
	result.Notice = strings.TrimSpace(result.Notice + " " + unkept)
	return memory(wire.Encode(result))
}

func memory(encoded []byte) body {
	return body{at: bytes.NewReader(encoded), size: int64(len(encoded))}
}

func (b body) close() {
	if b.file != nil {
		b.file.Close()
	}
}

// Size is how many bytes Result gives; 0 is none.
func (s State) Size() int64 { return s.result.size }

// Result reads the command's wire.ExecResult as JSON. It fails once the result
// has made room for others.
func (s State) Result() io.Reader { return io.NewSectionReader(s.result.at, 0, s.result.size) }
