package client

import (
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// maxOutputAnswer is more than a chunk of nothing but control bytes takes, six
// times its size as JSON.
const maxOutputAnswer = 6*(wire.MaxOutputChunk+3) + 4<<10

func checkProcess(p *Process) error {
	switch {
	case !wire.ValidExecID(p.ID):
		return badAnswer("process id is malformed")
	case p.Kind != wire.KindProcess && p.Kind != wire.KindJob:
		return badAnswer("unknown kind of process")
	case len(p.Command) > wire.MaxProcessCommand:
		return badAnswer("a command of %d bytes", len(p.Command))
	case p.OutputStart < 0 || p.OutputEnd < p.OutputStart || p.OutputEnd-p.OutputStart > wire.ProcessOutputBytes:
		return badAnswer("impossible offsets")
	case len(p.Notice) > maxMessage:
		return badAnswer("a notice of %d bytes", len(p.Notice))
	}
	p.Notice = clean(p.Notice, maxMessage)
	if p.Running && (p.Ended != nil || p.Cancelled) {
		return badAnswer("a process that runs and has ended")
	}
	return checkExit(p.Running, p.ExitCode)
}

func checkExit(running bool, code *int) error {
	switch {
	case code == nil:
		return nil
	case running:
		return badAnswer("an exit code of a process that runs")
	case *code < 0 || *code > 255:
		return badAnswer("exit code %d", *code)
	}
	return nil
}

func checkProcessList(l *ProcessList) error {
	for i := range l.Processes {
		if err := checkProcess(&l.Processes[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkOutput refuses an answer that would lead a reader astray: one who goes on
// at NextOffset must come forward.
func checkOutput(q OutputQuery, o *ProcessOutput) error {
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultOutputChunk
	}
	limit = min(limit, MaxOutputChunk)
	taken := o.NextOffset - o.Offset
	switch {
	case o.Offset < 0 || o.Offset < q.Offset || taken < 0 || taken > int64(limit)+3:
		return badAnswer("impossible offsets")
	case (taken == 0) != (o.Output == "") || int64(len(o.Output)) > 3*taken:
		return badAnswer("%d bytes for %d", len(o.Output), taken)
	}
	return checkExit(o.Running, o.ExitCode)
}
