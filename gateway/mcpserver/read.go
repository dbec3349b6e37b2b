package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/splice"
)

const (
	// maxRead is how much one read returns.
	maxRead = 8 << 20
	// readBudget bounds what all reads of this replica hold until it has been
	// sent; more wait their turn. One caller may have three quarters of it.
	readBudget = 8 * maxRead
	readsEach  = readBudget * 3 / 4
	// spliceAbove is the size from which an artifact is encoded while it is sent.
	spliceAbove = 64 << 10
)

// bodyWait is how long an artifact's bytes may take to come once there is room
// for them. Their sandbox may be hostile, and others wait for that room.
const bodyWait = time.Minute

// Why an artifact is not read, in words for the caller.
var (
	errLarge = errors.New("artifact is too large to be read at once")
	errSlow  = fmt.Errorf("its bytes did not come within %s: try again", bodyWait)
)

// readArtifact returns an artifact's bytes as they were at its export, or a
// log's: all of them, or the part that the URI asks for. One that can't be
// read is as unknown as a random URI is.
func (s *Server) readArtifact(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	handle, part, err := artifact.ParseURI(uri)
	if err != nil {
		audit.FromContext(ctx).Code = audit.CodeNotFound
		return nil, notFound(req, uri)
	}
	content, err := s.content(ctx, req.Extra.Header, handle, part, maxRead)
	switch {
	case errors.Is(err, artifact.ErrNotFound):
		return nil, notFound(req, uri)
	case errors.Is(err, errLarge):
		return nil, unavailable(fmt.Errorf("%w: read it in parts, beginning with %s?offset=0&length=%d", err, handle.URI(), maxRead))
	case err != nil:
		return nil, unavailable(err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents(ctx, uri, content)}}, nil
}

// content is an artifact's bytes, or some of them.
type content struct {
	*artifact.Reading
	data []byte
}

// content reads a part of an artifact, of at most limit bytes, whose room is
// held until the call has been answered. It fills in the call's audit record.
func (s *Server) content(ctx context.Context, header http.Header, handle artifact.Handle, part artifact.Part, limit int64) (*content, error) {
	call := audit.FromContext(ctx)
	call.Namespace, call.Session = handle.Namespace, handle.Name
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := s.read(ctx, cancel, header, handle, part, limit)
	switch {
	case err == nil:
		call.Code, call.OutBytes = audit.CodeOK, int64(len(c.data))
		return c, nil
	case errors.Is(context.Cause(ctx), errSlow):
		call.Code, err = audit.CodeFailed, errSlow
	case errors.Is(err, errLarge):
		call.Code = audit.CodeInvalid
	default:
		call.Code = codeOf(ctx, err)
	}
	return nil, err
}

func (s *Server) read(ctx context.Context, cancel context.CancelCauseFunc, header http.Header, handle artifact.Handle, part artifact.Part, limit int64) (*content, error) {
	reading, err := s.Artifacts.Open(ctx, header, handle, part)
	if err != nil {
		return nil, err
	}
	defer reading.Body.Close()
	if reading.Length > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errLarge, reading.Length, limit)
	}
	if err := s.reads.Admit(ctx, reading.Length); err != nil {
		return nil, err
	}
	defer time.AfterFunc(bodyWait, func() { cancel(errSlow) }).Stop()
	data := make([]byte, reading.Length)
	if _, err := io.ReadFull(reading.Body, data); err != nil {
		return nil, err
	}
	return &content{reading, data}, nil
}

// contents chooses text or blob, for a part by what is in it: one whose border
// cuts a character is a blob, so that its bytes are exact. An empty file is an
// empty blob: an empty text would be sent as neither.
func contents(ctx context.Context, uri string, c *content) *mcp.ResourceContents {
	out := &mcp.ResourceContents{URI: uri, MIMEType: c.MIMEType}
	isText := len(c.data) > 0 && textual(c.MIMEType) && utf8.Valid(c.data)
	large := len(c.data) > spliceAbove
	switch {
	case isText && large:
		out.Text = splice.Text(ctx, c.data)
	case isText:
		out.Text = string(c.data)
	case large:
		out.Blob = splice.Blob(ctx, c.data)
	default:
		out.Blob = append([]byte{}, c.data...)
	}
	return out
}

// textualTypes are those outside of text/ that people read.
var textualTypes = map[string]bool{
	"application/json":       true,
	"application/x-ndjson":   true,
	"application/xml":        true,
	"application/javascript": true,
	"application/yaml":       true,
	"application/x-yaml":     true,
	"application/toml":       true,
	"application/sql":        true,
	"application/x-sh":       true,
	"application/x-tex":      true,
}

// textual tells whether a type is one of text.
func textual(mimeType string) bool {
	base, _, err := mime.ParseMediaType(mimeType)
	if err != nil {
		return false
	}
	return strings.HasPrefix(base, "text/") || textualTypes[base] ||
		strings.HasSuffix(base, "+json") || strings.HasSuffix(base, "+xml") || strings.HasSuffix(base, "+yaml")
}

// Codes of "resource not found": SEP-2164 gave up the first one's own.
const (
	codeNotFoundLegacy = -32002
	codeNotFoundModern = jsonrpc.CodeInvalidParams
	modernVersion      = "2026-07-28"
)

// notFound is the one answer for all that can't be read, by the code of the
// request's protocol version.
func notFound(req mcp.Request, uri string) error {
	code := int64(codeNotFoundLegacy)
	if req.GetExtra().Header.Get("Mcp-Protocol-Version") >= modernVersion {
		code = codeNotFoundModern
	}
	data, _ := json.Marshal(map[string]string{"uri": uri}) // a string: can't fail
	return &jsonrpc.Error{Code: code, Message: "Resource not found", Data: data}
}

// unavailable is an artifact that may be there and can't be read now. The SDK
// would send a plain error under code 0.
func unavailable(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "artifact read failed: " + err.Error()}
}
