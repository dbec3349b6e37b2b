package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Methods of the extension.
const (
	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"
	// MethodListen is the protocol's own, and served here when it asks for tasks.
	MethodListen = "subscriptions/listen"
)

// ErrNotFound is a task that there isn't, or that is none for its caller, or is no
// longer kept. It is matched by what a Source returns; the text is for the caller.
var ErrNotFound = errors.New("task not found: it never was, or isn't yours, or is no longer kept")

// Source finds tasks for the caller of ctx. header is that of the request.
type Source interface {
	// Get returns how a task is: at its end, or after wait if that comes first.
	Get(ctx context.Context, header http.Header, id string, wait time.Duration) (*Task, error)
	// Cancel asks a task to end. One that has ended stays as it is.
	Cancel(ctx context.Context, header http.Header, id string) error
	// Update gives a task what it asked for. What it didn't is ignored.
	Update(ctx context.Context, header http.Header, id string, responses map[string]json.RawMessage) error
}

type params struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// Serve makes server serve the tasks of source. Its middleware is to come last.
func Serve(server *mcp.Server, source Source) error {
	return errors.Join(
		mcp.AddReceivingCustomMethod(server, MethodGet, func(ctx context.Context, _ *mcp.ServerSession, p *params) (*GetResult, error) {
			task, err := source.Get(ctx, headerOf(ctx), p.ID, 0)
			if err != nil {
				return nil, wireError(err)
			}
			return &GetResult{ResultType: resultComplete, Task: *task}, nil
		}),
		mcp.AddReceivingCustomMethod(server, MethodUpdate, func(ctx context.Context, _ *mcp.ServerSession, p *params) (*Acknowledgement, error) {
			return acknowledge(source.Update(ctx, headerOf(ctx), p.ID, p.Responses))
		}),
		mcp.AddReceivingCustomMethod(server, MethodCancel, func(ctx context.Context, _ *mcp.ServerSession, p *params) (*Acknowledgement, error) {
			return acknowledge(source.Cancel(ctx, headerOf(ctx), p.ID))
		}),
	)
}

func acknowledge(err error) (*Acknowledgement, error) {
	if err != nil {
		return nil, wireError(err)
	}
	return &Acknowledgement{ResultType: resultComplete}, nil
}

func wireError(err error) *jsonrpc.Error {
	if errors.Is(err, ErrNotFound) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

type headerKey struct{}

// headerOf is the header of the request of ctx: the SDK hands it to middleware
// alone.
func headerOf(ctx context.Context) http.Header {
	header, _ := ctx.Value(headerKey{}).(http.Header)
	return header
}

// Middleware offers tasks to calls of clients that declared the extension, and
// refuses its methods to all others.
func Middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case MethodGet, MethodUpdate, MethodCancel:
			p, _ := req.GetParams().(*params)
			if p == nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s needs params", method)}
			}
			if !Declared(p.GetMeta()) {
				return nil, Undeclared()
			}
			if extra := req.GetExtra(); extra != nil {
				ctx = context.WithValue(ctx, headerKey{}, extra.Header)
			}
			return next(ctx, method, req)
		case "tools/call":
			return offer(ctx, method, req, next)
		case "initialize":
			result, err := next(ctx, method, req)
			return withoutExtension(result), err
		default:
			return next(ctx, method, req)
		}
	}
}

func offer(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	p, _ := req.GetParams().(*mcp.CallToolParamsRaw)
	if p == nil || !Declared(p.GetMeta()) {
		return next(ctx, method, req)
	}
	o := &Offer{}
	result, err := next(context.WithValue(ctx, offerKey{}, o), method, req)
	if err != nil || o.taken == nil {
		return result, err
	}
	return &CreateResult{ResultType: resultTask, Task: *o.taken}, nil
}

// withoutExtension keeps the extension from clients of older versions of the
// protocol, which have no results of several types.
func withoutExtension(result mcp.Result) mcp.Result {
	r, ok := result.(*mcp.InitializeResult)
	if !ok || r == nil || r.Capabilities == nil || r.Capabilities.Extensions == nil {
		return result
	}
	shown, capabilities := *r, *r.Capabilities
	capabilities.Extensions = maps.Clone(capabilities.Extensions)
	if delete(capabilities.Extensions, Extension); len(capabilities.Extensions) == 0 {
		capabilities.Extensions = nil
	}
	shown.Capabilities = &capabilities
	return &shown
}
