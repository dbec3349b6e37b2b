package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// modelled is one of several callers of the same session. It knows what its own
// variable must hold: a command that ends counts, one that takes its shell with
// it doesn't, and what other callers do changes nothing.
type modelled struct {
	*soaked
	random   *rand.Rand
	variable string
	value    int
	mark     string // what the command that runs writes, like no other
}

// step is one thing that a caller does, and an error if the result isn't its own.
type step func(ctx context.Context, m *modelled) error

var steps = map[string]step{
	"counts": func(ctx context.Context, m *modelled) error {
		m.value++
		return m.expect(ctx, client.ExecRequest{Command: m.count() + "; echo $" + m.variable}, 0, fmt.Sprintf("%d\n", m.value))
	},
	"exits": func(ctx context.Context, m *modelled) error {
		return m.expect(ctx, client.ExecRequest{Command: m.count() + "; exit 7"}, 7, "")
	},
	"kills the shell": func(ctx context.Context, m *modelled) error {
		return m.expect(ctx, client.ExecRequest{Command: m.count() + "; kill -9 $BASHPID"}, 137, "")
	},
	"runs a mere program": func(ctx context.Context, m *modelled) error {
		r, err := m.Run(ctx, client.ExecRequest{Command: "/bin/echo " + m.mark})
		return m.own(r, err, 0, "")
	},
	"gives an input": func(ctx context.Context, m *modelled) error {
		input := strings.Repeat(m.mark, m.random.IntN(40_000))
		return m.expect(ctx, client.ExecRequest{Command: ":; wc -c", Stdin: input}, 0, fmt.Sprintf("%d\n", len(input)))
	},
	"gives an input that is not read": func(ctx context.Context, m *modelled) error {
		return m.expect(ctx, client.ExecRequest{Command: ":", Stdin: strings.Repeat("x", m.random.IntN(400_000))}, 0, "")
	},
	"streams": func(ctx context.Context, m *modelled) error {
		var got strings.Builder
		lines := m.random.IntN(20_000)
		r := client.ExecRequest{Command: fmt.Sprintf("yes %s | head -n %d", m.mark, lines)}
		_, err := m.Client.ExecStream(ctx, m.Pod, r, 0, func(_ byte, data []byte) error { got.Write(data); return nil })
		if err == nil && got.String() != strings.Repeat(m.mark+"\n", lines) {
			err = fmt.Errorf("%d bytes that are not %d lines of %s", got.Len(), lines, m.mark)
		}
		return err
	},
	"times out": func(ctx context.Context, m *modelled) error {
		limit := m.random.Float64() / 50
		r, err := m.Run(ctx, client.ExecRequest{Command: m.count() + "; echo " + m.mark + "; sleep 77", Timeout: limit})
		if err == nil && r.Stdout == "" { // before it began
			r.Stdout = m.mark + "\n"
		}
		return m.own(r, err, 137, "")
	},
	"goes away": func(ctx context.Context, m *modelled) error {
		soon, cancel := context.WithTimeout(ctx, time.Duration(m.random.IntN(8000))*time.Microsecond)
		defer cancel()
		_, _ = m.Client.Exec(soon, m.Pod, client.ExecRequest{Command: m.count()}, 0) // has ended, or was cancelled
		return m.look(ctx)
	},
	"is cancelled": func(ctx context.Context, m *modelled) error {
		var both sync.WaitGroup
		pause := time.Duration(m.random.IntN(20)) * time.Millisecond
		both.Go(func() {
			<-time.After(pause)
			_ = m.Client.CancelExec(ctx, m.Pod, m.mark) // it may be over, or not have come
		})
		_, err := m.Run(ctx, client.ExecRequest{ID: m.mark, Command: m.count() + "; sleep 0.01"})
		both.Wait()
		if err != nil {
			return err
		}
		return m.look(ctx)
	},
	"starts a process": func(ctx context.Context, m *modelled) error {
		p, err := m.Client.StartProcess(ctx, m.Pod, client.ProcessRequest{Command: "echo " + m.mark})
		if err != nil {
			return err
		}
		o, err := m.Client.ProcessOutput(ctx, m.Pod, p.ID, client.OutputQuery{Wait: time.Minute})
		if err == nil && o.Output != m.mark+"\n" {
			err = fmt.Errorf("got %+v", *o)
		}
		return err
	},
}

func (m *modelled) count() string { return fmt.Sprintf("%s=$((%[1]s+1))", m.variable) }

// expect runs a command that writes the mark, then more.
func (m *modelled) expect(ctx context.Context, r client.ExecRequest, code int, more string) error {
	r.Command = "echo " + m.mark + "; " + r.Command
	result, err := m.Run(ctx, r)
	return m.own(result, err, code, more)
}

func (m *modelled) own(r *client.ExecResult, err error, code int, more string) error {
	if err == nil && (r.ExitCode != code || r.Stdout != m.mark+"\n"+more || r.Stderr != "") {
		err = fmt.Errorf("got %+v, want code %d, %s and %q", *r, code, m.mark, more)
	}
	return err
}

// look learns whether a command that was cancelled has counted: nothing else may
// have changed.
func (m *modelled) look(ctx context.Context) error {
	r, err := m.Run(ctx, client.ExecRequest{Command: "echo $" + m.variable})
	if err != nil {
		return err
	}
	var now int
	if _, err := fmt.Sscan(r.Stdout, &now); err != nil || now != m.value && now != m.value+1 {
		return fmt.Errorf("%d has become %q", m.value, r.Stdout)
	}
	m.value = now
	return nil
}

// TestEachResultIsItsOwnCommands: whatever several callers of one session do at
// the same time, each gets what its own command wrote, and keeps its state.
func TestEachResultIsItsOwnCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	names := slices.Sorted(maps.Keys(steps))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			m := &modelled{soaked: s, random: rand.New(rand.NewPCG(3, uint64(caller))), variable: fmt.Sprintf("v%d", caller)}
			if _, err := s.Run(t.Context(), client.ExecRequest{Command: m.variable + "=0"}); err != nil {
				t.Error(err)
			}
			for i := range *commands / callers {
				name := names[m.random.IntN(len(names))]
				m.mark = fmt.Sprintf("caller-%d-%d", caller, i)
				if err := steps[name](t.Context(), m); err != nil {
					t.Errorf("%s, which %s: %v", m.mark, name, err)
					if err := m.look(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}
