package wire

// ExportRequest is the body of POST /v1/artifacts.
type ExportRequest struct {
	// Path is relative to the workspace, or absolute inside it.
	Path string `json:"path"`
	// Archive exports a directory, or a file, as a .tar.gz of it.
	Archive bool `json:"archive,omitempty"`
	// Digest asks for the SHA-256 of a file above CopiedArtifact too. It is read
	// for that as a whole, and what changes it later ends the artifact.
	Digest bool `json:"digest,omitempty"`
}

// ExportSeconds is what an archive or a digest may take.
const ExportSeconds = 120

// Artifact describes one exported file.
type Artifact struct {
	// ID is 32 lower-case hex digits.
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"size"`
	// SHA256 is lower-case hex. A file above CopiedArtifact has one only if it was
	// asked for.
	SHA256 string `json:"sha256,omitempty"`
	// ExpiresIn is how many seconds it stays readable.
	ExpiresIn int `json:"expires_in"`
	// Notice says what an archive leaves out, and what changed while it was made.
	Notice string `json:"notice,omitempty"`
}
