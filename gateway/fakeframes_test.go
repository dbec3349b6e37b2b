package gateway_test

import (
	"encoding/binary"
	"encoding/json"
	"net/http"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// The wire of a command's output as it happens.
const (
	framesType  = "application/vnd.berth.frames"
	frameResult = 3
	frameError  = 4
)

// frames writes a command's output as it happens. What can't be written is for
// nobody: the caller has gone.
type frames struct{ w http.ResponseWriter }

// frame writes one frame, and sends it.
func (f frames) frame(kind byte, payload []byte) {
	f.header(kind, len(payload))
	_, _ = f.w.Write(payload)
	_ = http.NewResponseController(f.w).Flush()
}

func (f frames) header(kind byte, length int) {
	f.w.Header().Set("Content-Type", framesType)
	_, _ = f.w.Write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(length)))
}

func (f frames) stdout(text string) { f.frame(client.FrameStdout, []byte(text)) }

func (f frames) stderr(text string) { f.frame(client.FrameStderr, []byte(text)) }

func (f frames) result(r client.ExecResult) { f.json(frameResult, r) }

func (f frames) json(kind byte, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	f.frame(kind, data)
}
