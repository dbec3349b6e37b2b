package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/audit"
	"github.com/berth-dev/berth/gateway/cancellation"
)

const (
	methodAcknowledged = "notifications/subscriptions/acknowledged"
	methodNotify       = "notifications/tasks"
)

// MaxListened is how many tasks one request may listen to: those that come first.
const MaxListened = 64

// pollTime is how long a source is asked to wait at a time.
const pollTime = time.Minute

// Listener serves subscriptions/listen for tasks, which the SDK doesn't, and holds
// the header that names a task against the body. All else goes on to Next.
type Listener struct {
	Source Source
	// Enter takes one of the places that calls under way have.
	Enter func(ctx context.Context) (leave func(), ok bool)
	// Panicked is told of a panic, which ends a stream alone.
	Panicked func(ctx context.Context, p any)
	// Ended is told of each subscription's end: its session is that of the last task
	// it named.
	Ended func(ctx context.Context, call *audit.Call)
	Next  http.Handler
}

// message is what is read of a JSON-RPC request before it goes on.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta          map[string]any `json:"_meta"`
		TaskID        string         `json:"taskId"`
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
		} `json:"notifications"`
	} `json:"params"`
}

// ServeHTTP implements http.Handler. The method is in a header, so no other body is
// read twice.
func (l Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Header.Get("Mcp-Method")
	named := method == MethodGet || method == MethodUpdate || method == MethodCancel
	if r.Method != http.MethodPost || !named && method != MethodListen {
		l.Next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body) // its length is bounded in front
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m message
	if err != nil || json.Unmarshal(body, &m) != nil || m.Method != method || !isID(m.ID) {
		l.Next.ServeHTTP(w, r) // which says what is wrong with it
		return
	}
	switch {
	case named && r.Header.Get("Mcp-Name") != m.Params.TaskID:
		refuse(w, http.StatusBadRequest, m.ID, &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "header mismatch: Mcp-Name is not the body's taskId"})
	case method == MethodListen && len(m.Params.Notifications.TaskIDs) > 0 && l.mine(r, m):
		l.listen(w, r, m)
	default:
		l.Next.ServeHTTP(w, r)
	}
}

// isID tells whether id is a string or a number.
func isID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// mine tells whether a request is as the SDK would take it, which says what is wrong
// with any other.
func (l Listener) mine(r *http.Request, m message) bool {
	v, _ := m.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return v == version && r.Header.Get("Mcp-Protocol-Version") == v &&
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") &&
		strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

func refuse(w http.ResponseWriter, status int, id json.RawMessage, err *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": err})) // nobody is left to be told
}

// listen tells how the tasks are now, and of each how it ended, until all have or the
// client goes.
func (l Listener) listen(w http.ResponseWriter, r *http.Request, m message) {
	began, call := time.Now(), &audit.Call{Operation: MethodListen}
	code := audit.CodePanic
	defer func() {
		call.Code, call.Duration = code, time.Since(began)
		l.Ended(r.Context(), call)
	}()
	if !Declared(m.Params.Meta) {
		code = audit.CodeInvalid
		refuse(w, http.StatusBadRequest, m.ID, Undeclared())
		return
	}
	leave, ok := l.Enter(r.Context())
	if !ok {
		code = audit.CodeFailed
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the gateway serves as many calls as it can; try again"})
		return
	}
	defer leave()
	var known []*Task
	agreed, working := []string{}, 0
	for _, id := range unique(m.Params.Notifications.TaskIDs) {
		ctx, drop := cancellation.Attempt(r.Context())
		task, err := l.Source.Get(audit.WithCall(ctx, call), r.Header, id, 0)
		if err == nil {
			without := *task // results are got one by one, each when it is told
			without.Result = nil
			if leave, ok := l.place(r.Context(), &without, &working); ok {
				defer leave()
				known, agreed = append(known, &without), append(agreed, id)
			}
		}
		drop()
	}
	s := &stream{w: w, subscription: m.ID}
	s.begin()
	s.notify(methodAcknowledged, map[string]any{"notifications": map[string]any{"taskIds": agreed}, "_meta": s.meta()})
	var following sync.WaitGroup
	var broken atomic.Bool // a stream without an end is to be begun anew
	follow := func(task *Task) {
		defer func() {
			if p := recover(); p != nil { // it would end the process
				broken.Store(true)
				l.Panicked(r.Context(), p)
			}
		}()
		if !l.follow(r, task, s) {
			broken.Store(true)
		}
	}
	for _, task := range known {
		if task.Status.Final() {
			follow(task)
			continue
		}
		s.notify(methodNotify, notification{s.meta(), task})
		following.Go(func() { follow(task) })
	}
	following.Wait()
	switch {
	case r.Context().Err() != nil:
		code = audit.CodeCancelled
	case broken.Load():
		code = audit.CodeFailed
	default:
		code = audit.CodeOK
		s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"resultType": resultComplete, "_meta": s.meta()}})
	}
}

// place takes a place for a task that will be waited for, which is a request to an
// agent as a call is. The first has its stream's.
func (l Listener) place(ctx context.Context, task *Task, working *int) (leave func(), ok bool) {
	if task.Status.Final() {
		return func() {}, true
	}
	if *working++; *working == 1 {
		return func() {}, true
	}
	return l.Enter(ctx)
}

// unique returns the first MaxListened of ids, each once.
func unique(ids []string) (few []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] && len(few) < MaxListened {
			seen[id] = true
			few = append(few, id)
		}
	}
	return few
}

// follow waits for the end of a task, and tells it, with the room of its result given
// back once it is told. One that is no longer known has failed. It returns false if
// its end can't be waited for.
func (l Listener) follow(r *http.Request, task *Task, s *stream) (told bool) {
	for {
		asked := time.Now()
		ctx, drop := cancellation.Attempt(r.Context())
		next, err := l.Source.Get(ctx, r.Header, task.ID, pollTime)
		switch {
		case errors.Is(err, ErrNotFound):
			failed := *task
			failed.Fail(err.Error())
			failed.PollInterval = 0
			next = &failed
		case err != nil:
			drop()
			return false
		}
		if next.Status.Final() {
			s.notify(methodNotify, notification{s.meta(), next})
			drop()
			return true
		}
		drop()
		// An agent that doesn't wait is not asked more often for it.
		select {
		case <-time.After(PollInterval - time.Since(asked)):
		case <-r.Context().Done():
			return false
		}
	}
}

type notification struct {
	Meta map[string]any `json:"_meta"`
	*Task
}

// stream is the answer to a subscription: server-sent events.
type stream struct {
	w            http.ResponseWriter
	subscription json.RawMessage

	mu sync.Mutex
}

func (s *stream) meta() map[string]any {
	return map[string]any{mcp.MetaKeySubscriptionID: s.subscription}
}

func (s *stream) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	s.w.WriteHeader(http.StatusOK)
}

func (s *stream) notify(method string, params any) {
	s.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// send writes one event. A client that is gone ends its request's context.
func (s *stream) send(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := encode(v) // one at a time: its client chose how long the id in each is
	_, _ = s.w.Write([]byte("event: message\ndata: "))
	_, _ = s.w.Write(data)
	_, _ = s.w.Write([]byte("\n\n"))
	_ = http.NewResponseController(s.w).Flush()
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("tasks: what is sent does not encode: " + err.Error())
	}
	return data
}
