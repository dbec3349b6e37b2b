package artifactstore

import (
	"fmt"
	"os"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// maxKey is far more than any key is long, in bytes.
const maxKey = 16 << 10

// files are credentials that are read anew for each request, so that a rotated
// Secret is used as soon as it is there.
type files struct{ access, secret, token string }

// RetrieveWithCredContext implements credentials.Provider.
func (f files) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return f.read()
}

// Retrieve implements credentials.Provider.
func (f files) Retrieve() (credentials.Value, error) { return f.read() }

// IsExpired implements credentials.Provider.
func (f files) IsExpired() bool { return true }

// readTries is how often files are read that change meanwhile.
const readTries = 5

// read returns keys that belong together: a Secret that is rotated between two of
// its files is read again.
func (f files) read() (v credentials.Value, err error) {
	v.SignerType = credentials.SignatureV4
	if v.AccessKeyID, err = key("accessKeyFile", f.access); err != nil {
		return v, err
	}
	for range readTries {
		if v.SecretAccessKey, err = key("secretKeyFile", f.secret); err != nil {
			return v, err
		}
		if f.token != "" {
			if v.SessionToken, err = key("sessionTokenFile", f.token); err != nil {
				return v, err
			}
		}
		again, err := key("accessKeyFile", f.access)
		if err != nil || again == v.AccessKeyID {
			return v, err
		}
		v.AccessKeyID = again
	}
	return v, fmt.Errorf("%w: accessKeyFile: it changes faster than it can be read", errCredentials)
}

// key reads one file. Its error never holds what the file does.
func key(field, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", errCredentials, field, err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" || len(text) > maxKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: %s: %s: want a key alone: one line of printable ASCII without spaces", errCredentials, field, path)
	}
	return text, nil
}
