package dispatch

import (
	"bytes"
	"context"
	"io"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Files is what dispatch needs of the agents' client for the file tools.
type Files interface {
	ReadLines(ctx context.Context, pod client.Pod, path string, lines client.Lines) (*client.FileContent, error)
	ReadBytes(ctx context.Context, pod client.Pod, path string, span client.Span) (*client.FileContent, error)
	WriteFile(ctx context.Context, pod client.Pod, path string, size int64, body io.Reader) (*client.WrittenFile, error)
	EditFile(ctx context.Context, pod client.Pod, path string, edits []client.Edit) (*client.EditedFile, error)
	ListFiles(ctx context.Context, pod client.Pod, listing client.Listing) (*client.FileList, error)
}

// ReadLines reads whole lines of a file. The notice says what the session lost
// before this call, here and below.
func (d *Dispatcher) ReadLines(ctx context.Context, req session.Request, path string, lines client.Lines) (_ *client.FileContent, notice string, err error) {
	var content *client.FileContent
	notice, err = d.call(ctx, req, harmless, func(ctx context.Context, rec *session.Record) (err error) {
		content, err = d.agent.ReadLines(ctx, rec.Pod(), path, lines)
		return err
	})
	return content, notice, withNotice(err, notice)
}

// ReadBytes reads a part of a file.
func (d *Dispatcher) ReadBytes(ctx context.Context, req session.Request, path string, span client.Span) (_ *client.FileContent, notice string, err error) {
	var content *client.FileContent
	notice, err = d.call(ctx, req, harmless, func(ctx context.Context, rec *session.Record) (err error) {
		content, err = d.agent.ReadBytes(ctx, rec.Pod(), path, span)
		return err
	})
	return content, notice, withNotice(err, notice)
}

// WriteFile makes data the content of a file.
func (d *Dispatcher) WriteFile(ctx context.Context, req session.Request, path string, data []byte) (_ *client.WrittenFile, notice string, err error) {
	var written *client.WrittenFile
	notice, err = d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		// A reader of its own for each time that it is sent.
		written, err = d.agent.WriteFile(ctx, rec.Pod(), path, int64(len(data)), bytes.NewReader(data))
		return err
	})
	return written, notice, withNotice(err, notice)
}

// EditFile replaces pieces of a file: all of them, or none.
func (d *Dispatcher) EditFile(ctx context.Context, req session.Request, path string, edits []client.Edit) (_ *client.EditedFile, notice string, err error) {
	var edited *client.EditedFile
	notice, err = d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		edited, err = d.agent.EditFile(ctx, rec.Pod(), path, edits)
		return err
	})
	return edited, notice, withNotice(err, notice)
}

// ListFiles lists a directory.
func (d *Dispatcher) ListFiles(ctx context.Context, req session.Request, listing client.Listing) (_ *client.FileList, notice string, err error) {
	var list *client.FileList
	notice, err = d.call(ctx, req, harmless, func(ctx context.Context, rec *session.Record) (err error) {
		list, err = d.agent.ListFiles(ctx, rec.Pod(), listing)
		return err
	})
	return list, notice, withNotice(err, notice)
}
