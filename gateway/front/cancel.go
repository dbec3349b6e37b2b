package front

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/berth-dev/berth/gateway/cancellation"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// message is what cancellation reads of a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Methods that end a call or are one without an end.
const (
	methodCancelled = "notifications/cancelled"
	methodListen    = "subscriptions/listen"
)

// cancel ties a call to its HTTP request and to notifications/cancelled, and a
// subscription, which would never end, to the gateway's own end.
func (f *Front) cancel(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		share, ok := f.admitBody(w, r)
		if !ok {
			return
		}
		defer share.Release()
		body, err := readBody(r)
		if err != nil {
			f.refuseBody(w, err)
			return
		}
		bodyRead(w)
		share.Keep(costOf(int64(len(body))))
		r.Body = io.NopCloser(bytes.NewReader(body))

		// A batch has neither id nor method here: its calls end with their HTTP
		// request.
		m, batch, err := parse(body)
		if err != nil {
			f.refuseMessage(w, err)
			return
		}
		if m.Method != methodCancelled { // which is answered with a status, however late
			startStream(r.Context())
		}
		ctx, end := r.Context(), context.CancelFunc(func() {})
		if batch {
			ctx = cancellation.WithBatch(ctx)
		}
		if m.Method == methodListen {
			ctx, end = until(ctx, f.Options.Draining)
		}
		defer end()

		scope, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(f.Options.Ending, func() { cancel(cancellation.ErrShutdown) })()
		if call, ok := f.callOf(r, m); ok {
			if m.Method == methodCancelled {
				f.cancelCall(ctx, r.Header, call)
			} else {
				id := client.NewCallID()
				ctx = client.WithCall(ctx, call.Key(), id)
				ended := f.Calls.Begin(call, id, cancel)
				defer func() { ended(r.Context().Err() != nil) }()
			}
		}
		next.ServeHTTP(w, r.WithContext(cancellation.WithScope(ctx, scope)))
	})
}

// until returns a context that also ends when other does.
func until(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}

// firstRead is how much a body gets before any of it has come: an announced
// length is only a promise.
const firstRead = 64 << 10

// readBody reads a body whole.
func readBody(r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), firstRead)) + bytes.MinRead)
	_, err := b.ReadFrom(r.Body)
	return b.Bytes(), err
}

type streamKey struct{}

func withStream(ctx context.Context, s *streamWriter) context.Context {
	return context.WithValue(ctx, streamKey{}, s)
}

// startStream begins the keep-alive of a request that has been read.
func startStream(ctx context.Context) {
	if s, ok := ctx.Value(streamKey{}).(*streamWriter); ok {
		s.start()
	}
}
