package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/session"
)

const breakdownRounds = 20

// breakdown says where the time of a call goes.
type breakdown struct {
	whole time.Duration
	parts []part
	// used is processor time per call.
	used []part
	// profiles are shares of processor time by what it was used for, in percent.
	profiles []profile
}

// readProfiles reads the profiles of gateway and agent, if there are any.
func (b *breakdown) readProfiles(dir string) error {
	if dir == "" {
		return nil
	}
	for _, of := range []string{"gateway", "agent"} {
		p, err := readProfile(of, filepath.Join(dir, of+".cpu"))
		if err != nil {
			return err
		}
		b.profiles = append(b.profiles, p)
	}
	return nil
}

// part is one part of a call's time, and how it was found.
type part struct {
	name, how string
	time      time.Duration
}

// whereTimeGoes runs the same call at each level, in turns: what one level takes
// beyond the one below is its own.
func whereTimeGoes(ctx context.Context, b *bench) (_ *breakdown, err error) {
	l, stop, err := b.levels(ctx)
	if err != nil {
		return nil, fmt.Errorf("where the time goes: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := alternate(breakdownRounds, l.gateway, l.stock, l.agent, l.health, l.shell); err != nil {
		return nil, fmt.Errorf("where the time goes: %w", err)
	}
	used, err := l.processorTime(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("where the processor's time goes: %w", err)
	}
	p50 := func(c *contender) time.Duration { return c.percentile(50) }
	return &breakdown{
		whole: p50(l.gateway),
		parts: []part{
			{"MCP client and server", "a tool that does nothing, on a stock SDK server", p50(l.stock)},
			{"gateway", "what `bash true` takes beyond that and the agent's `true`", p50(l.gateway) - p50(l.stock) - p50(l.agent)},
			{"HTTP to the agent and back", "`GET /v1/health`, without a token", p50(l.health)},
			{"agent", "what `true` takes beyond that and the shell: signature, queue, JSON", p50(l.agent) - p50(l.health) - p50(l.shell)},
			{"shell", "`true` in the agent's shell package alone, in a process of its own", p50(l.shell)},
		},
		used: used,
	}, nil
}

// levels are the same call from the outermost to the innermost.
type levels struct {
	session                              *session.Session
	gateway, stock, agent, health, shell *contender
}

func (b *bench) levels(ctx context.Context) (_ *levels, stop func() error, err error) {
	var stops []func() error
	stop = func() (err error) {
		for _, end := range slices.Backward(stops) {
			err = errors.Join(err, end())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	const id = "parts"
	pod, agent, err := b.agentOf(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, func() error { agent.Close(); return nil })
	s, err := b.connect(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, s.Close)
	address, stopStock, err := startStock(ctx)
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, stopStock)
	n, err := session.Connect(ctx, session.Target{Address: address})
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, n.Close)
	shell, stopShell, err := startShell(ctx)
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, stopShell)
	call := func(do func() error) *contender { return &contender{perRound: 100, do: timed(do)} }
	return &levels{
		session: s,
		gateway: call(func() error { return bashTrue(ctx, s) }),
		stock: call(func() error {
			_, err := n.CallTool(ctx, &mcp.CallToolParams{Name: noop, Arguments: struct{}{}})
			return err
		}),
		agent:  call(func() error { return agentTrue(ctx, agent, pod) }),
		health: call(func() error { return health(ctx, agent, pod) }),
		shell:  &contender{perRound: 100, do: shell},
	}, stop, nil
}

func health(ctx context.Context, agent *client.Client, pod client.Pod) error {
	_, err := agent.Health(ctx, pod)
	return err
}

// startShell starts this program as one that runs commands in the agent's shell
// package alone. next runs one and tells how long it took there.
func startShell(ctx context.Context) (next func() (time.Duration, error), stop func() error, err error) {
	stdin, stdout, stop, err := startSelf(ctx, shellArgument)
	if err != nil {
		return nil, nil, err
	}
	next = func() (time.Duration, error) {
		if _, err := fmt.Fprintln(stdin); err != nil {
			return 0, err
		}
		line, err := stdout.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("the shell ended: %w", err)
		}
		return time.ParseDuration(strings.TrimSpace(line))
	}
	return next, stop, nil
}

// processorTime measures what each process uses for a call.
func (l *levels) processorTime(ctx context.Context, b *bench) ([]part, error) {
	const calls = 2000
	before, err := l.usage(ctx, b)
	if err != nil {
		return nil, err
	}
	for range calls {
		if _, err := l.gateway.do(); err != nil {
			return nil, err
		}
	}
	after, err := l.usage(ctx, b)
	if err != nil {
		return nil, err
	}
	for i := range after {
		after[i].time = (after[i].time - before[i].time) / calls
	}
	return after, nil
}

// usage gives the processor time that each process has used so far.
func (l *levels) usage(ctx context.Context, b *bench) ([]part, error) {
	gateway, _, err := b.gatewayUsage(ctx)
	if err != nil {
		return nil, err
	}
	// Fields 14 and 15 of the agent's and the shell's stat, in hundredths of a second.
	ticks, err := numbers(ctx, l.session, `for p in 1 $$; do read -r -a f </proc/$p/stat; echo "${f[13]} ${f[14]}"; done`, 4)
	if err != nil {
		return nil, err
	}
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return nil, err
	}
	const tick = 10 * time.Millisecond
	return []part{
		{name: "MCP client", time: time.Duration(self.Utime.Nano() + self.Stime.Nano())},
		{name: "gateway", time: time.Duration(gateway * float64(time.Second))},
		{name: "agent", time: time.Duration(ticks[0]+ticks[1]) * tick},
		{name: "shell", time: time.Duration(ticks[2]+ticks[3]) * tick},
	}, nil
}
