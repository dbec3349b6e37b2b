package client

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Span is a part of an artifact. The zero value is all of it.
type Span struct {
	Offset int64
	// Length is how many bytes at most; 0 is up to the end.
	Length int64
}

// Reading is an artifact being read. Body yields exactly Length bytes, or an
// error; the caller closes it.
type Reading struct {
	Artifact
	// Offset and Length are what Body holds of Size.
	Offset int64
	Length int64
	ETag   string
	Body   io.ReadCloser
}

// ReadArtifact opens an artifact for reading. budget bounds Length: an agent
// that offers more is refused. It returns ErrNotFound for one that is unknown
// or has expired, ErrRange for a span that begins beyond the end. It may take any
// time, if no piece takes more than StallTimeout from when it is waited for.
func (c *Client) ReadArtifact(ctx context.Context, pod Pod, id string, span Span, budget int64) (*Reading, error) {
	if !wire.ValidArtifactID(id) {
		return nil, ErrNotFound
	}
	header := http.Header{}
	if r := span.header(); r != "" {
		header.Set("Range", r)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stall := time.AfterFunc(c.options.StallTimeout, func() { cancel(context.DeadlineExceeded) })
	resp, err := c.do(ctx, pod, http.MethodGet, wire.ArtifactsPath+"/"+id, header, nil)
	stall.Stop()
	if err != nil {
		err = withCause(ctx, err)
		cancel(nil)
		return nil, err
	}
	reading, err := newReading(id, span, budget, resp)
	if err != nil {
		resp.Body.Close()
		cancel(nil)
		return nil, err
	}
	reading.Body = &exactBody{ctx: ctx, cancel: cancel, body: resp.Body, left: reading.Length, stall: stall, timeout: c.options.StallTimeout}
	return reading, nil
}

func (s Span) header() string {
	switch {
	case s.Length > 0:
		return fmt.Sprintf("bytes=%d-%d", s.Offset, s.Offset+s.Length-1)
	case s.Offset > 0:
		return fmt.Sprintf("bytes=%d-", s.Offset)
	}
	return ""
}

// strongETag is an entity tag that isn't weak (RFC 9110 §8.8.3).
var strongETag = regexp.MustCompile(`^"[!#-~]{1,126}"$`)

// newReading checks an answer's header against what was asked.
func newReading(id string, span Span, budget int64, resp *http.Response) (*Reading, error) {
	r := &Reading{Length: resp.ContentLength, ETag: resp.Header.Get("ETag")}
	r.ID, r.MIMEType = id, resp.Header.Get("Content-Type")
	switch {
	case resp.ContentLength < 0:
		return nil, badAnswer("artifact of unknown length")
	case resp.ContentLength > budget:
		return nil, badAnswer("artifact is longer than %d bytes", budget)
	case !strongETag.MatchString(r.ETag):
		return nil, badAnswer("artifact without a strong ETag")
	case resp.StatusCode == http.StatusPartialContent:
		if err := r.parseRange(resp.Header.Get("Content-Range")); err != nil {
			return nil, err
		}
	case resp.ContentLength == 0 && span.Offset > 0:
		return nil, ErrRange // of nothing there is no part, so that HTTP gives the whole
	default:
		r.Size = resp.ContentLength
	}
	asked := r.Size - span.Offset
	if span.Length > 0 {
		asked = min(asked, span.Length)
	}
	if r.Offset != span.Offset || r.Length != asked { // less would pass for all there is
		return nil, badAnswer("not the range that was asked for")
	}
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		r.Name = params["filename"]
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Berth-Expires-In")); err == nil {
		r.ExpiresIn = seconds
	}
	r.SHA256 = digest(resp.Header.Get("Repr-Digest"))
	return r, checkArtifact(&r.Artifact)
}

func (r *Reading) parseRange(s string) error {
	var first, last, size int64
	if n, err := fmt.Sscanf(s, "bytes %d-%d/%d", &first, &last, &size); n != 3 || err != nil {
		return badAnswer("Content-Range is malformed")
	}
	if first < 0 || last < first || last >= size || last-first+1 != r.Length {
		return badAnswer("Content-Range is impossible")
	}
	r.Offset, r.Size = first, size
	return nil
}

// digest returns the SHA-256 of a Repr-Digest header (RFC 9530) as hex.
func digest(header string) string {
	value, ok := strings.CutPrefix(header, "sha-256=:")
	if !ok {
		return ""
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}

// exactBody turns an early end into an error, bounds the wait for each piece and
// gives up the request's context when closed.
type exactBody struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	left    int64
	stall   *time.Timer // ends ctx
	timeout time.Duration
}

func (b *exactBody) Read(p []byte) (int, error) {
	b.stall.Reset(b.timeout)
	n, err := b.body.Read(p)
	b.stall.Stop()
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		err = io.ErrUnexpectedEOF
	case err != nil && !errors.Is(err, io.EOF):
		err = withCause(b.ctx, err)
	}
	return n, err
}

func (b *exactBody) Close() error {
	b.stall.Stop()
	defer b.cancel(nil)
	return b.body.Close()
}

// withCause adds to an error why its context ended, if it did.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
