package httpapi

import (
	"context"
	"net/http"

	"github.com/berth-dev/berth/sandbox-agent/shell"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// outcome is how a command ended whose answer is one piece.
type outcome struct {
	result  wire.ExecResult
	refusal *Refusal
	// output is how much of it the result keeps, in bytes.
	output int64
	room   *share
}

// outcome runs a command to its end.
func (s *Server) outcome(ctx context.Context, req wire.ExecRequest) outcome {
	c := s.prepare(req)
	defer c.Logs.Finish()
	result, refusal := s.run(ctx, req.ID, c.Command)
	o := outcome{refusal: refusal, room: c.room}
	if refusal == nil {
		o.output = kept(&result, c.OutputBytes)
		o.result = encode(&result, c.Logs)
	}
	return o
}

// answer gives the outcome to whoever waits for it.
func (o *outcome) answer(w http.ResponseWriter) *Refusal {
	defer o.room.release()
	if o.refusal != nil {
		return o.refusal
	}
	o.room.keep(costOf(o.output))
	writeJSON(w, http.StatusOK, o.result)
	return nil
}

// kept is how many bytes of output a result has, of which it keeps so many of
// each stream.
func kept(r *shell.Result, ofEach int) int64 {
	return min(r.Stdout.Total, int64(ofEach)) + min(r.Stderr.Total, int64(ofEach))
}
