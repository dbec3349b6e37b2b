package dispatch

import (
	"context"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Export is a file that was taken out of a session.
type Export struct {
	client.Artifact
	// Handle is what it is read by.
	Handle artifact.Handle
}

// Export takes a file out of the session's workspace, into the artifact store
// that its template names. The notice says what the session lost before this call.
func (d *Dispatcher) Export(ctx context.Context, req session.Request, request client.ExportRequest) (_ *Export, notice string, err error) {
	var export *Export
	notice, err = d.call(ctx, req, never, func(ctx context.Context, rec *session.Record) (err error) {
		if rec.ArtifactStore != "" {
			export, err = d.keep(ctx, rec, request)
			return err
		}
		taken, err := d.agent.Export(ctx, rec.Pod(), request)
		if err != nil {
			return err
		}
		export = &Export{*taken, artifact.Handle{Key: rec.Key, ID: taken.ID}}
		return nil
	})
	if err != nil {
		return nil, "", withNotice(err, notice)
	}
	return export, notice, nil
}
