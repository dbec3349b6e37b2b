package serve

import (
	"errors"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/artifact"
	"github.com/berth-dev/berth/sandbox-agent/detached"
	"github.com/berth-dev/berth/sandbox-agent/execlog"
	"github.com/berth-dev/berth/sandbox-agent/files"
	"github.com/berth-dev/berth/sandbox-agent/httpapi"
	"github.com/berth-dev/berth/sandbox-agent/upload"
)

// stores hold what a session's calls leave, take and find.
type stores struct {
	artifacts *artifact.Store
	logs      *execlog.Store
	detached  *detached.Store
	uploads   *upload.Store
	files     *files.Store
}

// openStores opens the stores of a workspace. What has no name there lies in one of
// spools.
func openStores(workspace string, spools []string) (*stores, error) {
	clock := artifact.SystemClock{}
	s := &stores{detached: detached.New(spools, clock)}
	var err error
	if s.artifacts, err = artifact.NewStore(workspace, spools, clock); err != nil {
		return nil, err
	}
	if s.logs, err = execlog.New(workspace, s.artifacts, clock); err != nil {
		return nil, err
	}
	if s.uploads, err = upload.NewStore(workspace, time.Now); err != nil {
		return nil, err
	}
	if s.files, err = files.NewStore(workspace); err != nil {
		return nil, err
	}
	return s, nil
}

// serve lets api, which has the artifacts, use the others.
func (s *stores) serve(api *httpapi.Server) {
	api.KeepLogs(s.logs)
	api.KeepDetached(s.detached)
	api.KeepUploads(s.uploads, artifact.SystemClock{})
	api.KeepFiles(s.files)
}

// close ends what is under way in them.
func (s *stores) close() error {
	return errors.Join(s.artifacts.Close(), s.uploads.Close(), s.files.Close())
}
