package front

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// Canceller ends calls that other replicas carry.
type Canceller interface {
	// Cancel ends the call of that key, if there is exactly one, in a session
	// that exists.
	Cancel(ctx context.Context, req session.Request, key string) error
	// Others tells whether the session's agent knows of a call of that key besides
	// the one of that id. It doesn't wait for a session.
	Others(ctx context.Context, req session.Request, key, id string) bool
}

// cancelWait is how long a notification is followed up: a session whose call waits
// for it may be about to be ready.
const cancelWait = 10 * time.Second

// callOf names the call that m is, or that m cancels.
func (f *Front) callOf(r *http.Request, m message) (cancellation.Call, bool) {
	caller, ok := authn.FromContext(r.Context())
	if !ok {
		return cancellation.Call{}, false
	}
	id := m.ID
	if m.Method == methodCancelled {
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &params) // what is malformed names no call
		id = params.RequestID
	}
	if len(id) == 0 {
		return cancellation.Call{}, false
	}
	choice, err := session.ChoiceFrom(r.Header)
	if err != nil {
		return cancellation.Call{}, false
	}
	return cancellation.Call{
		Caller:  caller.Owner(),
		Session: session.Key{Namespace: f.Namespaces.For(caller, choice), Name: r.Header.Get(session.Header)}.String(),
		ID:      string(id),
	}, true
}

// cancelCall ends the call that a notification names: here, or, if it isn't known
// here, wherever its session's agent has it from. That nothing was ended is no
// failure: the call may have ended by itself.
func (f *Front) cancelCall(ctx context.Context, header http.Header, call cancellation.Call) {
	own, found := f.Calls.Find(call)
	if found == cancellation.Gone || found == cancellation.Several {
		return
	}
	// Whoever notifies may hang up at once.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer cancel()
	defer context.AfterFunc(f.Options.Ending, cancel)()
	id, err := session.FromHeader(header)
	caller, _ := authn.FromContext(ctx) // callOf has found it
	choice, malformed := session.ChoiceFrom(header)
	if malformed != nil {
		return // no call has such a header
	}
	req := session.Request{Key: session.Key{Namespace: f.Namespaces.For(caller, choice), Name: id}, Caller: caller}
	switch {
	case found == cancellation.One && (err != nil || !f.Cancels.Others(ctx, req, call.Key(), own)):
		f.Calls.Cancel(call, own)
	case found == cancellation.One:
		f.unclear(ctx, req)
	case err == nil: // else a call without a session, which has nothing in a pod
		f.cancelElsewhere(ctx, req, call.Key())
	}
}

// cancelElsewhere ends a call that another replica carries. Who may not use the
// session may not end what it does either.
func (f *Front) cancelElsewhere(ctx context.Context, req session.Request, key string) {
	allowed, err := f.Authorizer.Allowed(ctx, req.Caller, authz.Create, req.Key.Namespace, req.Key.Name)
	if err != nil || !allowed {
		f.Log.InfoContext(ctx, "Notification of a cancelled call was not followed up", "namespace", req.Key.Namespace, "session", req.Key.Name, "allowed", allowed, "error", err)
		return
	}
	switch err = f.Cancels.Cancel(ctx, req, key); {
	case err == nil, errors.Is(err, artifact.ErrNotFound), errors.Is(err, session.ErrNotFound):
	case errors.Is(err, client.ErrManyCalls):
		f.unclear(ctx, req)
	default:
		f.Log.InfoContext(ctx, "Cancelled call could not be looked for in its session", "namespace", req.Key.Namespace, "session", req.Key.Name, "error", err)
	}
}

func (f *Front) unclear(ctx context.Context, req session.Request) {
	f.Log.InfoContext(ctx, "Calls of several clients have the id that one of them cancelled: none was ended", "namespace", req.Key.Namespace, "session", req.Key.Name)
}
