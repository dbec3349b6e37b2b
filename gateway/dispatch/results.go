package dispatch

import (
	"context"

	"github.com/berth-dev/berth/gateway/room"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// What a result costs. The MCP SDK encodes it three times over, it is in its
// answer twice, and < > & become six bytes each. But no more than MaxResult
// leaves the gateway.
const (
	costOfByte = 30
	mostCost   = 6 * client.MaxResult
	// resultRoom bounds what large results cost at a time. One caller may have three
	// quarters of it.
	resultRoom  = 4 * mostCost
	resultsEach = resultRoom * 3 / 4
)

// AdmitResults returns what client.Options.Admit is in a gateway.
func AdmitResults() func(ctx context.Context, size int64) error {
	results := room.New(resultRoom, resultsEach)
	return func(ctx context.Context, size int64) error { return results.Admit(ctx, min(size*costOfByte, mostCost)) }
}
