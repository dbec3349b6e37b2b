package front

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/session"
)

// artifactsPath comes before an artifact's token.
const artifactsPath = "/artifacts/"

// Artifacts opens artifacts for whoever may read them.
type Artifacts interface {
	Open(ctx context.Context, header http.Header, handle artifact.Handle, part artifact.Part) (*artifact.Reading, error)
}

// Streams bounds artifacts on their way to callers.
type Streams struct {
	// Max is how many there are at a time. Each holds a small buffer and two
	// connections.
	Max int
	// Each is how many of them one caller may have, so that others find a place.
	Each int
	// Stall is how long a caller may take to read one piece, of 256 KiB at most.
	Stall time.Duration
	// Longest is how long one may take as a whole.
	Longest time.Duration
}

// errLongest is the end of a stream that took too long.
var errLongest = errors.New("the artifact took too long to be read")

// artifact answers GET and HEAD of /artifacts/{token}.
func (f *Front) artifact(w http.ResponseWriter, r *http.Request, token string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "an artifact is read with GET or HEAD")
		return
	}
	r, call, end := f.record(r, "get_artifact")
	out := &stream{ResponseWriter: w, stall: f.Options.Streams.Stall}
	defer func() {
		call.OutBytes = out.sent
		end()
	}()
	if r.ContentLength != 0 || r.URL.RawQuery != "" {
		call.Code = audit.CodeInvalid
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, "bad_request", "want neither a query nor a body: the header Range asks for a part")
		return
	}
	bodyRead(w)
	leave, ok := f.streams.Enter(r.Context())
	if !ok {
		call.Code = audit.CodeFailed
		f.Metrics.Refusal("busy")
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "busy", "too many artifacts are being read at a time: try again")
		return
	}
	defer leave()
	ctx, stop := context.WithTimeoutCause(r.Context(), f.Options.Streams.Longest, errLongest)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.Options.Ending, func() { cancel(cancellation.ErrShutdown) })()
	f.sendArtifact(ctx, out, r, token, call)
}

// sendArtifact streams an artifact, or the part of it that a Range asks for. One
// that can't be read to its end breaks the connection: its caller must not take
// what came for all there is.
func (f *Front) sendArtifact(ctx context.Context, out *stream, r *http.Request, token string, call *audit.Call) {
	source := &content{first: firstPart(r)}
	handle, err := artifact.Parse(token)
	if err == nil {
		call.Namespace, call.Session = handle.Namespace, handle.Name
		source.open = func(part artifact.Part) (*artifact.Reading, error) {
			return f.Artifacts.Open(ctx, r.Header, handle, part)
		}
		err = source.begin()
	} else {
		err = artifact.ErrNotFound
	}
	defer source.close()
	if err != nil {
		refused := artifactRefusal(err)
		if call.Code = refused.audit; r.Context().Err() != nil {
			call.Code = audit.CodeCancelled
		}
		if refused.status == http.StatusServiceUnavailable {
			out.Header().Set("Retry-After", "1")
		}
		refuse(out.ResponseWriter, refused.status, refused.code, refused.message)
		return
	}
	describe(out.Header(), source.reading)
	fitRange(r, source.reading.Size)
	defer out.end(ctx)()
	http.ServeContent(out, r, "", time.Time{}, source)
	switch {
	case r.Context().Err() != nil, out.failed != nil:
		call.Code = audit.CodeCancelled
		panic(http.ErrAbortHandler)
	case source.failed != nil:
		call.Code = audit.CodeFailed
		f.Log.WarnContext(ctx, "Artifact was cut off", "namespace", handle.Namespace, "session", handle.Name,
			"sent", out.sent, "error", errors.Join(source.failed, context.Cause(ctx)))
		panic(http.ErrAbortHandler)
	case out.status == http.StatusRequestedRangeNotSatisfiable:
		call.Code = audit.CodeInvalid
	default:
		call.Code = audit.CodeOK
	}
}

// describe sets the headers of an artifact. It was made by whoever works in the
// sandbox, so that a browser must neither show nor run it.
func describe(h http.Header, r *artifact.Reading) {
	h.Set("Content-Type", r.MIMEType)
	h.Set("Content-Disposition", disposition(r.Name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	// It may be kept, but not shown before this gateway was asked who may see it.
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", r.ETag)
	if sum, err := hex.DecodeString(r.SHA256); err == nil && len(sum) > 0 {
		h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	}
}

// artifactRefusal is the answer for an artifact that can't be read: one and the
// same for all that its caller may not know of.
func artifactRefusal(err error) *refusal {
	if !errors.Is(err, artifact.ErrNotFound) {
		return refusalOf(err)
	}
	r := &refusal{status: http.StatusNotFound, code: "not_found", message: artifact.ErrNotFound.Error(), audit: audit.CodeNotFound}
	if errors.Is(err, session.ErrForbidden) || errors.Is(err, session.ErrNotAvailable) {
		r.audit = audit.CodeForbidden
	}
	return r
}
