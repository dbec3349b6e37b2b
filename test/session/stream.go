package session

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tokens makes the progress tokens of this program unique.
var tokens atomic.Int64

// Stream runs a command, and calls told with what it writes, both streams as one,
// while it runs. What comes fast may come in portions, with a line in place of
// what is left out, and the end is told by the result alone.
func (s *Session) Stream(ctx context.Context, command string, told func(text string)) (Result, error) {
	token := "berth-test-" + strconv.FormatInt(tokens.Add(1), 10)
	s.told.Store(token, told)
	defer s.told.Delete(token)
	params := &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": command}}
	params.SetProgressToken(token)
	var result Result
	err := s.call(ctx, params, &result)
	return result, err
}

func (s *Session) tell(progress *mcp.ProgressNotificationParams) {
	if told, ok := s.told.Load(progress.ProgressToken); ok {
		told.(func(string))(progress.Message)
	}
}
