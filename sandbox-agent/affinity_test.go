package main

import (
	"runtime"
	"strings"
	"testing"
)

// R24: what a session runs has other processors than the agent, so that the agent
// has its own, whatever runs.
func TestSessionAndAgentHaveProcessorsOfTheirOwn(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	dir := newCgroup(t, "cpu", map[string]string{"cpu.cfs_quota_us": "100000"})
	a := startAgent(t, agentOptions{within: []string{enterCgroup(dir)}, shipped: true})
	const own = `grep -h Cpus_allowed: /proc/self/status`
	session := a.output(t, own)
	// It is confined when it runs already.
	p := a.background(t, `i=0; until [ "$(`+own+`)" = "`+strings.TrimSuffix(session, "\n")+`" ] || [ $i = 1000 ]; do i=$((i+1)); done; `+own)
	if got := a.until(t, p.ID, ""); got != session {
		t.Errorf("a background process runs on %q, a command on %q", got, session)
	}
	// Masks in hexadecimal. The supervisor of background processes is the agent's.
	agents := a.output(t, `for p in /proc/[0-9]*; do
		if [ "$(cat $p/comm)" = berth-agent ]; then grep -h Cpus_allowed: $p/task/*/status; fi
	done | sort -u`)
	if strings.Count(agents, "\n") != 1 || agents == session {
		t.Errorf("the session's processes are on %q, the threads of agent and supervisor on %q", session, agents)
	}
	if n := a.output(t, "nproc"); n != "1\n" && n != "2\n" {
		t.Errorf("a limit of one processor gave %s", n)
	}
}

func TestSessionHasAllProcessorsOfItsLimit(t *testing.T) {
	t.Parallel()
	dir := newCgroup(t, "cpu", map[string]string{"cpu.cfs_quota_us": "100000000"})
	a := startAgent(t, agentOptions{within: []string{enterCgroup(dir)}, shipped: true})
	const own = `grep -h Cpus_allowed: /proc/self/status`
	if session, agents := a.output(t, own), a.output(t, `grep -h Cpus_allowed: /proc/1/status`); session != agents {
		t.Errorf("the session's processes are on %q, the agent on %q", session, agents)
	}
}
