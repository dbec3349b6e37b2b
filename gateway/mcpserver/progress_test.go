package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/authn"
	"github.com/berth-dev/berth/gateway/authz"
	"github.com/berth-dev/berth/gateway/dispatch"
	"github.com/berth-dev/berth/gateway/metrics"
	"github.com/berth-dev/berth/gateway/places"
	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// oneConn is a listener of one connection.
type oneConn chan net.Conn

func (l oneConn) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close is called once, by the server.
func (l oneConn) Close() error {
	close(l)
	return nil
}

func (l oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

type allowAll struct{}

func (allowAll) Allowed(context.Context, *authn.Caller, authz.Verb, string, string) (bool, error) {
	return true, nil
}

func (allowAll) MayUse(context.Context, *authn.Caller, string, string) (bool, error) {
	return true, nil
}

// commands are Calls whose commands are a function.
type commands struct {
	Calls
	exec func(output func(kind byte, data []byte)) *client.ExecResult
}

func (c commands) Exec(_ context.Context, _ session.Request, command dispatch.Command) (*client.ExecResult, error) {
	return c.exec(command.Output), nil
}

// newServer is a server of calls and artifacts to anybody.
func newServer(t *testing.T, calls Calls, artifacts Artifacts, log slog.Handler) http.Handler {
	t.Helper()
	s := Server{
		Places: places.New(1, 1),
		Calls:  calls, Artifacts: artifacts, Authorizer: allowAll{}, Namespaces: session.Namespaces{Default: "n"},
		Metrics: metrics.New(func() int { return 0 }), Log: slog.New(log), MaxBody: 1 << 20,
	}
	mcp := s.Handler()
	none, err := authn.NewNone().Authenticate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mcp.ServeHTTP(w, r.WithContext(authn.WithCaller(r.Context(), none)))
	})
}

// serve serves calls to one connection, which takes as much as its reader does
// and no more.
func serve(t *testing.T, calls Calls) net.Conn {
	server := &http.Server{Handler: newServer(t, calls, nil, slog.DiscardHandler)}
	listener := make(oneConn, 1)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	reader, conn := net.Pipe()
	listener <- conn
	t.Cleanup(func() {
		reader.Close()
		server.Close() // the listener's error, which is none
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return reader
}

// ask sends a call of bash with a progress token.
func ask(t *testing.T, conn net.Conn, era string) {
	t.Helper()
	meta, headers := `"progressToken":1`, ""
	if era >= modernVersion {
		meta += `,"io.modelcontextprotocol/protocolVersion":"` + era + `","io.modelcontextprotocol/clientCapabilities":{}`
		headers = "Mcp-Method: tools/call\r\nMcp-Name: bash\r\n"
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"x"},"_meta":{` + meta + `}}}`
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-Session-ID: s\r\nMcp-Protocol-Version: %s\r\n%sContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", era, headers, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// messages reads a whole response: the data of its events.
func messages(t *testing.T, conn net.Conn) (all []string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "event: message\ndata: ")
		if !ok || !json.Valid([]byte(data)) {
			t.Errorf("%.100q is no event with a message", event)
		}
		all = append(all, data)
	}
	return all
}

// R21: a client that doesn't read delays no command, costs no more than one
// message, and gets an exact result once it does read.
func TestClientThatDoesNotReadHoldsNoCommand(t *testing.T) {
	for _, era := range []string{"2025-11-25", modernVersion} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				piece := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
				began, ended := time.Now(), make(chan time.Duration, 1)
				conn := serve(t, commands{exec: func(output func(byte, []byte)) *client.ExecResult {
					for range 1000 { // 64 MiB in 10 s
						output(client.FrameStdout, piece)
						<-time.After(10 * time.Millisecond)
					}
					ended <- time.Since(began)
					return &client.ExecResult{Stdout: "exact", StdoutBytes: int64(1000 * len(piece))}
				}})
				ask(t, conn, era)
				if took := <-ended; took != 10*time.Second {
					t.Errorf("the command took %s, want its 10 s", took)
				}
				synctest.Wait() // the result is there before anything is read
				got := messages(t, conn)
				if len(got) != 2 || !strings.Contains(got[0], `"notifications/progress"`) || !strings.Contains(got[1], `"stdout":"exact"`) {
					t.Errorf("%d messages, %.300q; want the one that was not read and the result", len(got), got)
				}
			})
		})
	}
}

// Traps 1 and 5: what happens after a notification is a result all the same, and
// an event of the stream.
func TestPanicAfterProgressIsAResult(t *testing.T) {
	for _, era := range []string{"2025-11-25", modernVersion} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := serve(t, commands{exec: func(output func(byte, []byte)) *client.ExecResult {
					output(client.FrameStderr, []byte("told"))
					<-time.After(time.Second)
					panic("the handler's own")
				}})
				ask(t, conn, era)
				synctest.Wait() // the result is there before anything is read
				got := messages(t, conn)
				if len(got) != 2 || !strings.Contains(got[0], `"message":"told"`) || !strings.Contains(got[1], `"isError":true`) || strings.Contains(got[1], `"error"`) {
					t.Errorf("messages %.500q, want a notification and a failed result", got)
				}
			})
		})
	}
}

// A command that writes for long is told ten times a second, each time all that
// is new.
func TestProgressIsRateLimitedOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := serve(t, commands{exec: func(output func(byte, []byte)) *client.ExecResult {
			for i := range 1000 {
				output(client.FrameStdout, fmt.Appendf(nil, "%03d\n", i))
				<-time.After(time.Millisecond)
			}
			return &client.ExecResult{}
		}})
		ask(t, conn, modernVersion)
		got := messages(t, conn)
		var told strings.Builder
		last := 0
		for _, data := range got[:len(got)-1] {
			var m struct {
				Params struct {
					Progress int
					Message  string
				}
			}
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatal(err)
			}
			told.WriteString(m.Params.Message)
			if m.Params.Progress <= last || m.Params.Progress != told.Len() {
				t.Errorf("progress %d after %d, %d bytes told", m.Params.Progress, last, told.Len())
			}
			last = m.Params.Progress
		}
		if n := len(got) - 1; n < 9 || n > 11 {
			t.Errorf("%d notifications in a second, want 10", n)
		}
		for i, line := range strings.Fields(told.String()) {
			if line != fmt.Sprintf("%03d", i) {
				t.Fatalf("line %d is %s", i, line)
			}
		}
	})
}
