package client

import (
	"net/netip"

	"github.com/berth-dev/berth/sandbox-agent/token"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// The types of the wire are re-exported, so that callers import this package
// alone.
type (
	// Session is which Sandbox an agent serves, and with what.
	Session = wire.Session
	// EnvVar is one environment variable.
	EnvVar = wire.EnvVar
	// Limits are what template and quota grant.
	Limits = wire.Limits
	// ExecRequest is a command.
	ExecRequest = wire.ExecRequest
	// ExecResult is what a command did.
	ExecResult = wire.ExecResult
	// ExecLog is where the whole of a command's output is.
	ExecLog = wire.ExecLog
	// LogFile is one stream of it.
	LogFile = wire.LogFile
	// ExportRequest is what is to be exported, and how.
	ExportRequest = wire.ExportRequest
	// Artifact is an exported file.
	Artifact = wire.Artifact
	// File is what was uploaded.
	File = wire.File
	// Health is how an agent is.
	Health = wire.Health
)

// Constants of the wire that callers need.
const (
	Port                      = wire.Port
	HealthPath                = wire.HealthPath
	MaxExecBody               = wire.MaxExecBody
	MaxResult                 = wire.MaxResult
	MaxArtifacts              = wire.MaxArtifacts
	CopiedArtifact            = wire.CopiedArtifact
	DefaultCommandTimeout     = wire.DefaultCommandTimeout
	MaxCommandTimeout         = wire.MaxCommandTimeout
	DefaultOutputBytes        = wire.DefaultOutputBytes
	MaxOutputBytes            = wire.MaxOutputBytes
	DefaultArtifactBytes      = wire.DefaultArtifactBytes
	DefaultLogBytes           = wire.DefaultLogBytes
	DefaultArtifactTotalBytes = wire.DefaultArtifactTotalBytes
	ExportSeconds             = wire.ExportSeconds
	ShellBash                 = wire.ShellBash
	ShellSh                   = wire.ShellSh
	ShellNone                 = wire.ShellNone
	StatusOK                  = wire.StatusOK
	StatusDraining            = wire.StatusDraining
	StatusNoShell             = wire.StatusNoShell
)

// Environment variables that configure an agent in a pod.
const (
	EnvPodUID     = wire.EnvPodUID
	EnvNamespace  = wire.EnvNamespace
	EnvPublicKeys = wire.EnvPublicKeys
)

// ValidArtifactID tells whether id has the form of an artifact id.
func ValidArtifactID(id string) bool { return wire.ValidArtifactID(id) }

// Pod says which agent is meant. All of it comes from the API server.
type Pod struct {
	Namespace string
	UID       string
	IP        netip.Addr
	// KeyID is the newest key that the pod knows (status.keyID); empty is the
	// signer's newest.
	KeyID string
}

func (p Pod) audience() string { return token.Audience(p.Namespace, p.UID) }
