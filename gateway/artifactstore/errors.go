package artifactstore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"
)

// Error is a store that didn't do what it was asked. Its text is for the caller:
// it names the store and no address, no key and no credential. The error below it
// is for the log, and names none either.
type Error struct {
	Store string
	Text  string
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("artifact store %q %s", e.Store, e.Text) }

func (e *Error) Unwrap() error { return e.Err }

// Why a store was given up, or a file.
var (
	// errStalled: it took or gave nothing for so long.
	errStalled = errors.New("stalled")
	// errSlow: it was not done within all the time there is.
	errSlow = errors.New("out of time")
	// errAgentStalled: the session's agent gave nothing for so long.
	errAgentStalled = errors.New("the sandbox gave nothing of the file for too long; try again")
	// errDiffers: what came is not what the agent had described.
	errDiffers = errors.New("the file's bytes are not those that the sandbox's agent described: it changed meanwhile, or the agent can't be believed; export it again")
	// errCutOff: a body ended before its announced end.
	errCutOff = errors.New("the object was cut off")
)

// response is what a store answered that refused: code, status and request ID,
// but not its message, which may repeat the key.
type response struct{ minio.ErrorResponse }

func (r response) Error() string {
	text := fmt.Sprintf("%s (status %d)", r.Code, r.StatusCode)
	if r.RequestID != "" {
		text += ", request " + r.RequestID
	}
	return text
}

// strip takes out of err what a log may not hold: URLs, which have keys,
// addresses, and messages of stores.
func strip(err error) error {
	var refused minio.ErrorResponse
	if errors.As(err, &refused) {
		return response{refused}
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		return errors.New("look up the endpoint's name: " + unknown.Err)
	}
	var other x509.HostnameError
	if errors.As(err, &other) {
		return errors.New("the certificate is not of the endpoint's name")
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	doing := ""
	for op := (*net.OpError)(nil); errors.As(err, &op); { // of a proxy, there is another one within
		doing, err = op.Op+": ", op.Err
	}
	if doing != "" {
		return fmt.Errorf("%s%w", doing, err)
	}
	return err
}

// code is the S3 code and status of err, if the store answered.
func code(err error) (code string, status int) {
	var refused minio.ErrorResponse
	var stripped response
	switch {
	case errors.As(err, &refused):
		return refused.Code, refused.StatusCode
	case errors.As(err, &stripped):
		return stripped.Code, stripped.StatusCode
	}
	return "", 0
}

// missing tells whether err is the store's word that there is no such object.
func missing(err error) bool {
	code, _ := code(err)
	return code == minio.NoSuchKey
}

// fail makes err one for the caller, and logs it.
func (s *Store) fail(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) && !errors.Is(context.Cause(ctx), errStalled) {
		return context.Cause(ctx) // its caller has gone, or its session: no fault of the store
	}
	text := explain(errors.Join(context.Cause(ctx), err))
	err = strip(err)
	s.log.Warn("Artifact store failed", "store", s.name, "doing", doing, "text", text, "error", err)
	return &Error{Store: s.name, Text: text, Err: err}
}

// explain says what a store's failure means, and what to do.
func explain(err error) string {
	code, status := code(err)
	switch {
	case errors.Is(err, errStalled):
		return "didn't go on for too long; try again"
	case errors.Is(err, errSlow):
		return "took too long; try again"
	case errors.Is(err, errCutOff):
		return "cut the file off; try again"
	case errors.Is(err, errPart):
		return "failed (" + errPart.Error() + ")"
	case code == minio.NoSuchBucket:
		return "has no bucket: whoever runs the gateway must make it"
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return "refused the gateway (" + code + "): whoever runs the gateway must see to its credentials and rights"
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return "is overloaded; try again"
	case status == http.StatusInsufficientStorage:
		return "is full"
	case status >= http.StatusInternalServerError:
		return fmt.Sprintf("failed (status %d); try again", status)
	case status != 0:
		return fmt.Sprintf("refused what it was asked (%s)", code)
	case errors.Is(err, errCredentials):
		return "has no usable credentials: whoever runs the gateway must see to the files that hold them"
	default:
		return "can't be reached; try again"
	}
}

// errCredentials are files that can't be read, or hold no keys.
var errCredentials = errors.New("credentials")

// temporary tells whether the same request may succeed later.
func temporary(err error) bool {
	_, status := code(err)
	switch {
	case errors.Is(err, errDiffers), errors.Is(err, errSlow), errors.Is(err, errCredentials):
		return false
	case status == 0:
		return true // it was not reached, or didn't go on
	}
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}
