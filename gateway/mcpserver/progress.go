package mcpserver

import (
	"context"
	"math"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/gateway/progress"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// report tells the caller what its command writes, in notifications, if the call
// carries a progress token; output is nil if it doesn't. The handler calls stop
// before it returns, so that no notification follows the result.
func report(ctx context.Context, req *mcp.CallToolRequest) (output func(kind byte, data []byte), stop func()) {
	token := req.Params.GetProgressToken()
	if !echoes(token) {
		return nil, func() {}
	}
	reporter := progress.Start(func(seen int64, text string) error {
		return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token,
			Progress:      float64(seen),
			Message:       text,
		})
	})
	return func(kind byte, data []byte) {
		stream := progress.Stdout
		if kind == client.FrameStderr {
			stream = progress.Stderr
		}
		reporter.Write(stream, data)
	}, reporter.Stop
}

// echoes tells whether token goes back as it came: text, or a whole number that
// a float64 holds exactly. With any other the caller would know none of its
// calls.
func echoes(token any) bool {
	switch token := token.(type) {
	case string:
		return true
	case float64:
		return token == math.Trunc(token) && math.Abs(token) < 1<<53
	default:
		return false
	}
}
