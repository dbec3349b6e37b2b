package mcpserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// inSession runs a tool call for the session that its header names, once its caller
// may use it. What ask returns is the result; its error is a result with text only,
// which begins with failed. The audit code is set here: ask sets one of its own only
// for a result that is more than OK or not.
func (s *Server) inSession(ctx context.Context, req *mcp.CallToolRequest, failed string, ask func(context.Context, session.Request) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	call := audit.FromContext(ctx)
	target, err := s.request(ctx, req.Extra.Header)
	if err != nil {
		call.Code = audit.CodeInvalid
		return nil, err
	}
	var result *mcp.CallToolResult
	if err = s.authorize(ctx, target, authz.Create); err == nil {
		result, err = ask(ctx, target)
	}
	switch {
	case err != nil:
		call.Code = codeOf(ctx, err)
		return failure(failed + err.Error()), nil
	case call.Code == audit.CodePanic:
		call.Code = audit.CodeOK
	}
	return result, nil
}

// request says which session a tool call is for. No session is touched.
func (s *Server) request(ctx context.Context, header http.Header) (session.Request, error) {
	id, err := session.FromHeader(header)
	if err != nil {
		return session.Request{}, err
	}
	call := audit.FromContext(ctx)
	call.Session = id
	caller, ok := authn.FromContext(ctx)
	if !ok {
		return session.Request{}, authn.ErrUnauthenticated
	}
	choice, err := session.ChoiceFrom(header)
	if err != nil {
		return session.Request{}, err
	}
	call.Namespace = s.Namespaces.For(caller, choice)
	return session.Request{
		Key:      session.Key{Namespace: call.Namespace, Name: id},
		Caller:   caller,
		Template: choice.Template,
		Mode:     session.FindOrCreate,
	}, nil
}

// authorize asks whether the caller may use the session, and the template that it
// wants.
func (s *Server) authorize(ctx context.Context, req session.Request, verb authz.Verb) error {
	why := session.ErrForbidden
	allowed, err := s.Authorizer.Allowed(ctx, req.Caller, verb, req.Key.Namespace, req.Key.Name)
	if err == nil && allowed {
		why = session.ErrTemplateForbidden
		allowed, err = s.Authorizer.MayUse(ctx, req.Caller, req.Key.Namespace, req.Template)
	}
	if err != nil {
		s.Log.ErrorContext(ctx, "Caller could not be authorized", "namespace", req.Key.Namespace, "session", req.Key.Name, "error", err)
		return authz.ErrUnavailable
	}
	if !allowed {
		return why
	}
	return nil
}

// codeOf is the audit code of a failed call.
func codeOf(ctx context.Context, err error) string {
	var template *session.TemplateError
	switch {
	case ctx.Err() != nil, errors.Is(err, client.ErrCancelled):
		return audit.CodeCancelled
	case errors.Is(err, session.ErrNotAvailable), errors.Is(err, session.ErrForbidden), errors.Is(err, session.ErrTemplateForbidden):
		return audit.CodeForbidden
	case errors.Is(err, session.ErrNotFound), errors.Is(err, artifact.ErrNotFound):
		return audit.CodeNotFound
	case errors.Is(err, artifact.ErrRange), errors.As(err, &template):
		return audit.CodeInvalid
	default:
		return audit.CodeFailed
	}
}

// answer is a tool's result: structured, and the same as JSON text.
func answer(v any) (*mcp.CallToolResult, error) {
	out, err := encodeBounded(v)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(out)}}, StructuredContent: out}, nil
}
