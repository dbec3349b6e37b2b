package wire

import "regexp"

var (
	artifactID = regexp.MustCompile(`^[0-9a-f]{32}$`)
	execID     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`)
)

// ValidArtifactID tells whether id has the form of an artifact id.
func ValidArtifactID(id string) bool { return artifactID.MatchString(id) }

// ValidExecID tells whether id may name a command. "." and ".." may not: they
// don't survive in a URL path.
func ValidExecID(id string) bool { return execID.MatchString(id) && id != "." && id != ".." }

// ValidEnvName tells whether name may be set in a session's environment.
func ValidEnvName(name string) bool { return envName.MatchString(name) }
