package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/gateway/session"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// scripted is an agent that answers each request with the next of its errors,
// and notes what it was asked.
type scripted struct {
	Agent
	store   *one
	answers []func(*one) error
	asked   []string
	ids     []string
}

func (s *scripted) next(what string, pod client.Pod) error {
	s.asked = append(s.asked, what+" "+pod.UID)
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer(s.store)
}

func (s *scripted) Bind(_ context.Context, pod client.Pod, _ client.Session) error {
	s.asked = append(s.asked, "bind "+pod.UID)
	return nil
}

func (s *scripted) Exec(_ context.Context, pod client.Pod, _ client.ExecRequest, _ time.Duration) (*client.ExecResult, error) {
	return &client.ExecResult{}, s.next("exec", pod)
}

func (s *scripted) StartProcess(_ context.Context, pod client.Pod, r client.ProcessRequest) (*client.Process, error) {
	s.ids = append(s.ids, r.ID)
	return &client.Process{ID: r.ID}, s.next("start", pod)
}

func (s *scripted) Processes(_ context.Context, pod client.Pod) (*client.ProcessList, error) {
	return &client.ProcessList{}, s.next("list", pod)
}

func (s *scripted) ProcessOutput(_ context.Context, pod client.Pod, _ string, _ client.OutputQuery) (*client.ProcessOutput, error) {
	return &client.ProcessOutput{}, s.next("output", pod)
}

func (s *scripted) ProcessInput(_ context.Context, pod client.Pod, _ string, _ client.ProcessInput) (*client.ProcessInputResult, error) {
	return &client.ProcessInputResult{}, s.next("input", pod)
}

func (s *scripted) SignalProcess(_ context.Context, pod client.Pod, _, _ string) error {
	return s.next("signal", pod)
}

// Answers of a scripted agent.
func fine(*one) error     { return nil }
func breaks(*one) error   { return io.ErrUnexpectedEOF }
func fresh(*one) error    { return &client.Error{Status: 409, Code: "session_required", Message: "bind"} }
func late(*one) error     { return context.DeadlineExceeded }
func bad(*one) error      { return client.ErrBadAnswer }
func unsent(*one) error   { return client.ErrNotSent }
func full(*one) error     { return &client.Error{Status: 429, Code: "queue_full", Message: "64 wait"} }
func quiesced(*one) error { return &client.Error{Status: 410, Code: "quiesced", Message: "idle"} }

// moving answers as answer does, when the session has a new pod.
func moving(answer func(*one) error) func(*one) error {
	return func(o *one) error {
		now := *o.rec
		now.PodUID = "p2"
		o.set(&now)
		return answer(o)
	}
}

// What may be sent again, and to whom: the rule of this package.
func TestWhatIsSentAgain(t *testing.T) {
	const (
		mayHaveRun = "the connection to the sandbox was lost; what was asked may have run"
		nothingRun = "the sandbox could not be reached; nothing was run"
	)
	type answers = []func(*one) error
	start := func(d *Dispatcher) error {
		_, _, err := d.Start(context.Background(), session.Request{}, client.ProcessRequest{Command: "x"})
		return err
	}
	list := func(d *Dispatcher) error {
		_, _, err := d.Processes(context.Background(), session.Request{})
		return err
	}
	output := func(d *Dispatcher) error {
		_, _, err := d.Output(context.Background(), session.Request{}, "id", client.OutputQuery{})
		return err
	}
	input := func(d *Dispatcher) error {
		_, _, err := d.Input(context.Background(), session.Request{}, "id", client.ProcessInput{})
		return err
	}
	signal := func(d *Dispatcher) error {
		_, err := d.Signal(context.Background(), session.Request{}, "id", "TERM")
		return err
	}
	exec := func(d *Dispatcher) error {
		_, err := d.Exec(context.Background(), session.Request{}, Command{Source: "x"})
		return err
	}
	tests := map[string]struct {
		call    func(*Dispatcher) error
		answers answers
		asked   []string
		err     string
	}{
		"command, broken":                {exec, answers{breaks}, []string{"exec p1"}, mayHaveRun},
		"command, quiesced":              {exec, answers{moving(quiesced), fine}, []string{"exec p1", "exec p2"}, ""},
		"command, fresh agent":           {exec, answers{fresh, fine}, []string{"exec p1", "bind p1", "exec p1"}, ""},
		"command, moved to a fresh one":  {exec, answers{fresh, moving(quiesced), fresh, fine}, []string{"exec p1", "bind p1", "exec p1", "exec p2", "bind p2", "exec p2"}, ""},
		"command, never bound":           {exec, answers{fresh, fresh}, []string{"exec p1", "bind p1", "exec p1"}, "bind"},
		"command, queue full":            {exec, answers{full}, []string{"exec p1"}, "64 wait; nothing was run: try again"},
		"input, broken":                  {input, answers{breaks}, []string{"input p1"}, mayHaveRun},
		"signal, broken":                 {signal, answers{breaks}, []string{"signal p1"}, mayHaveRun},
		"input, not sent":                {input, answers{unsent, fine}, []string{"input p1", "input p1"}, ""},
		"list, broken":                   {list, answers{breaks, fine}, []string{"list p1", "list p1"}, ""},
		"list, broken twice":             {list, answers{breaks, breaks}, []string{"list p1", "list p1"}, mayHaveRun},
		"list, broken, fresh agent":      {list, answers{breaks, fresh, fine}, []string{"list p1", "list p1", "bind p1", "list p1"}, ""},
		"output, broken, replaced":       {output, answers{moving(breaks), fine}, []string{"output p1", "output p2"}, ""},
		"output, too late":               {output, answers{late}, []string{"output p1"}, "the sandbox's agent gave no answer in time; what was asked may have run"},
		"output, bad":                    {output, answers{bad}, []string{"output p1"}, "the sandbox's agent gave an answer that can't be used"},
		"start":                          {start, answers{fine}, []string{"start p1"}, ""},
		"start, fresh agent":             {start, answers{fresh, fine}, []string{"start p1", "bind p1", "start p1"}, ""},
		"start, quiesced":                {start, answers{moving(quiesced), fine}, []string{"start p1", "start p2"}, ""},
		"start, broken":                  {start, answers{breaks, fine}, []string{"start p1", "start p1"}, ""},
		"start, broken twice":            {start, answers{breaks, breaks}, []string{"start p1", "start p1"}, mayHaveRun},
		"start, broken, container anew":  {start, answers{breaks, fresh}, []string{"start p1", "start p1"}, mayHaveRun},
		"start, broken, pod replaced":    {start, answers{moving(breaks)}, []string{"start p1"}, mayHaveRun},
		"start, broken, then refused":    {start, answers{breaks, full}, []string{"start p1", "start p1"}, mayHaveRun},
		"start, broken, then leaving":    {start, answers{breaks, moving(quiesced)}, []string{"start p1", "start p1"}, mayHaveRun},
		"start, broken, then not sent":   {start, answers{breaks, unsent, unsent}, []string{"start p1", "start p1", "start p1"}, mayHaveRun},
		"start, not sent, then not sent": {start, answers{unsent, unsent}, []string{"start p1", "start p1"}, nothingRun},
		"start, bad":                     {start, answers{bad}, []string{"start p1"}, "the sandbox's agent gave an answer that can't be used"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newOne()
				agent := &scripted{store: store, answers: tc.answers}
				err := tc.call(New(agent, store, store, nil, slog.New(slog.DiscardHandler), func(string) {}))
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != tc.err {
					t.Errorf("error %q, want %q", got, tc.err)
				}
				if diff := cmp.Diff(tc.asked, agent.asked); diff != "" {
					t.Errorf("the agent was asked (-want +got):\n%s", diff)
				}
				for _, id := range agent.ids {
					if id != agent.ids[0] || !client.ValidExecID(id) {
						t.Errorf("process ids %q, want the same one each time", agent.ids)
					}
				}
			})
		})
	}
}

// Two processes have two ids, whichever replica starts them.
func TestProcessIDsDiffer(t *testing.T) {
	t.Parallel()
	if a, b := processID(), processID(); a == b {
		t.Errorf("twice %s", a)
	}
}

// The word of a refusal that doesn't last is advice.
func TestRefusalsThatDoNotLastSaySo(t *testing.T) {
	t.Parallel()
	for want, refusal := range map[string]*client.Error{
		"full; nothing was run: try again in 2s":                {Status: 429, Code: "queue_full", Message: "full", RetryAfter: 2 * time.Second},
		"full; nothing was run: try again":                      {Status: 429, Code: "queue_full", Message: "full"},
		"64 run; nothing was run: try again once one has ended": {Status: 429, Code: "too_many_processes", Message: "64 run"},
		"no place; 128 are held":                                {Status: 429, Code: "too_many_artifacts", Message: "no place; 128 are held"},
	} {
		err := (&Dispatcher{}).explain(t.Context(), newOne().rec, refusal)
		var text *AgentError
		if !errors.As(err, &text) || text.Text != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
