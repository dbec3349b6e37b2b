package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/gateway/splice"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	// maxRead is how much one read returns.
	maxRead = 8 << 20
	// readBudget bounds what all reads of this replica hold until it has been
	// sent; more wait their turn.
	readBudget = 8 * maxRead
	// spliceAbove is the size from which an artifact is encoded while it is sent.
	spliceAbove = 64 << 10
)

// readArtifact returns an artifact's bytes as they were at its export, or a
// log's: all of them, or the part that the URI asks for. It needs
// no X-Session-ID: the URI names the session, and the caller must own it. A
// header that names another session makes it as unknown as a random URI is, and
// so do expiry, a foreign owner, a missing right and a deleted session.
func (s *Server) readArtifact(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	call := audit.FromContext(ctx)
	call.Code = audit.CodeNotFound
	uri := req.Params.URI
	handle, part, err := artifact.ParseURI(uri)
	if err != nil {
		return nil, notFound(req, uri)
	}
	caller, ok := authn.FromContext(ctx)
	if !ok || !sameSession(req, handle) {
		return nil, notFound(req, uri)
	}
	call.Namespace, call.Session = handle.Namespace, handle.Name
	target := session.Request{Key: handle.Key, Caller: caller}
	if err := s.authorize(ctx, target, authz.Get); err != nil {
		if call.Code == audit.CodeForbidden {
			return nil, notFound(req, uri)
		}
		return nil, unavailable(err)
	}
	content, err := s.Calls.Read(ctx, target, handle.ID, client.Span(part), maxRead, s.reads.Admit)
	switch {
	case errors.Is(err, dispatch.ErrLarge):
		call.Code = audit.CodeInvalid
		return nil, unavailable(fmt.Errorf("%w: read it in parts, beginning with %s?offset=0&length=%d", err, handle.URI(), maxRead))
	case errors.Is(err, dispatch.ErrNoArtifact), errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrNotAvailable):
		return nil, notFound(req, uri)
	case err != nil:
		call.Code = codeOf(ctx, err)
		return nil, unavailable(err)
	}
	call.Code, call.OutBytes = audit.CodeOK, int64(len(content.Data))
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents(ctx, uri, content)}}, nil
}

// sameSession tells whether a request's X-Session-ID, if it has one, is the
// artifact's session.
func sameSession(req *mcp.ReadResourceRequest, handle artifact.Handle) bool {
	values := req.Extra.Header.Values(session.Header)
	return len(values) == 0 || len(values) == 1 && values[0] == handle.Name
}

// contents chooses text or blob, for a part by what is in it: one whose border
// cuts a character is a blob, so that its bytes are exact. An empty file is an
// empty blob: an empty text would be sent as neither.
func contents(ctx context.Context, uri string, c *dispatch.Content) *mcp.ResourceContents {
	out := &mcp.ResourceContents{URI: uri, MIMEType: c.MIMEType}
	isText := len(c.Data) > 0 && textual(c.MIMEType) && utf8.Valid(c.Data)
	large := len(c.Data) > spliceAbove
	switch {
	case isText && large:
		out.Text = splice.Text(ctx, c.Data)
	case isText:
		out.Text = string(c.Data)
	case large:
		out.Blob = splice.Blob(ctx, c.Data)
	default:
		out.Blob = append([]byte{}, c.Data...)
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
