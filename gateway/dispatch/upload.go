package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Upload is a file on its way into a session's workspace.
type Upload struct {
	Name string
	// Size is how long Body is; negative if that isn't known.
	Size int64
	// Body is read once the session's agent has agreed to take it. A Read may
	// still be under way when the call has ended.
	Body io.Reader
}

// errSpent is an upload of whose body some is gone: there is nothing to repeat it
// with.
var errSpent = errors.New("the body had begun to be sent")

// Upload puts a file into the session's workspace. The notice says what the
// session lost before this call.
func (d *Dispatcher) Upload(ctx context.Context, req session.Request, u Upload) (_ *client.File, notice string, err error) {
	var file *client.File
	body := &begun{Reader: u.Body}
	notice, err = d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		file, err = d.agent.Upload(ctx, rec.Pod(), u.Name, u.Size, body)
		if err != nil && body.read.Load() {
			return fmt.Errorf("%w: %w", errSpent, err)
		}
		return err
	})
	if err != nil {
		return nil, "", withNotice(err, notice)
	}
	return file, notice, nil
}

// begun knows whether it was read.
type begun struct {
	io.Reader
	read atomic.Bool
}

func (b *begun) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.Reader.Read(p)
}
