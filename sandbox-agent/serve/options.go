// Package serve assembles the agent: options, listener, shell, artifacts and
// the HTTP surface, from start to drained end.
package serve

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Options are the flags of serve.
type Options struct {
	Listen         string
	Unix           string
	Workspace      string
	InsecureNoAuth bool
	// SessionDir is set by a gateway that runs without a cluster: see BindFlags.
	SessionDir string
}

const (
	defaultListen      = ":8090"
	defaultLocalListen = "127.0.0.1:8090"
	defaultWorkspace   = "/workspace"
)

// BindFlags declares the flags.
func (o *Options) BindFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Listen, "listen", "", "address to listen on (default "+defaultListen+", with --insecure-no-auth "+defaultLocalListen+")")
	f.StringVar(&o.Unix, "unix", "", "Unix socket to listen on instead, with --insecure-no-auth")
	f.StringVar(&o.Workspace, "workspace", defaultWorkspace, "directory that the shell starts in and files are exported from")
	f.BoolVar(&o.InsecureNoAuth, "insecure-no-auth", false, "by hand: serve without tokens, on loopback or a Unix socket only, with a session bound")
	f.StringVar(&o.SessionDir, "session-dir", "", "for berth-gateway --standalone: serve on the listening socket that is descriptor 3, in namespaces where this directory's workspace and tmp are /workspace and /tmp")
}

// Complete fills what depends on other flags, and refuses what must not be
// combined.
func (o *Options) Complete() error {
	if o.SessionDir != "" {
		return o.completeSession()
	}
	if o.Unix != "" && o.Listen != "" {
		return errors.New("--unix and --listen exclude each other")
	}
	if o.Unix != "" && !o.InsecureNoAuth {
		return errors.New("--unix is for running by hand: add --insecure-no-auth")
	}
	if o.Listen == "" {
		o.Listen = defaultListen
		if o.InsecureNoAuth {
			o.Listen = defaultLocalListen
		}
	}
	if o.InsecureNoAuth && o.Unix == "" && !loopback(o.Listen) {
		return fmt.Errorf("--insecure-no-auth refuses to listen on %q: use a loopback address or --unix", o.Listen)
	}
	workspace, err := filepath.Abs(o.Workspace)
	if err != nil {
		return fmt.Errorf("--workspace: %w", err)
	}
	o.Workspace = workspace
	return nil
}

func (o *Options) completeSession() error {
	if o.Listen != "" || o.Unix != "" || o.InsecureNoAuth || o.Workspace != defaultWorkspace {
		return errors.New("--session-dir excludes --listen, --unix, --insecure-no-auth and --workspace")
	}
	if !filepath.IsAbs(o.SessionDir) {
		return fmt.Errorf("--session-dir=%s: want an absolute path", o.SessionDir)
	}
	return nil
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
