package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
)

const intro = `<!-- Written by make bench. Do not edit: change test/bench and run it again. -->
# Performance

Nearly every figure is a ratio of two things measured in one run on one machine, so
that it says something about Berth and not about the machine. A ratio below 1 is a
part of the peer's time, or of the peer's rate.

`

const method = `
## Method

- Both sides of a ratio take turns, round by round, each first in every other
  round, after a warm-up that isn't counted. Percentiles are by nearest rank.
- Calls go from one MCP client (the official Go SDK, the newest protocol) to the
  gateway's Service, with a bearer token and ` + "`X-Session-ID`" + `, on a kept connection.
- P2, latency: ` + "`kubectl exec`" + ` is a WebSocket through API server and kubelet, with
  client-go, running ` + "`true`" + ` in the same container. 200 calls and 10 execs
  a round: what an exec leaves to the kubelet to tidy up meets few of the calls.
- P2, rate: eight sessions, one client each, one call after the other, in slices of
  2 s. The peer is a server of the same SDK, stateless and else with its defaults,
  in a process of its own on the same machine, with a tool that does nothing.
- P3: the agent in its pod, spoken to without the gateway, a signed token for each
  request as always. The peer is Go's ` + "`exec.Command(\"/bin/true\").Run()`" + `.
- P4: ` + "`dd if=/dev/zero bs=256k count=4096`" + ` in a pod with a limit of 2 CPUs, its output taken in
  frames by the agent's client, nothing of it kept. With the default of 1 command and agent
  share one, where the peer's two ends have one each. The peer is a process that writes as many bytes, 256 KiB
  at a time, to one connection of loopback that this program reads in the same way.
- Files: 512 MiB in a session of 2 CPUs and 2 GiB, by ` + "`POST /sessions/{id}/files`" + ` and
  ` + "`GET /artifacts/{token}`" + `, the file of zeros like the peer's bytes. Bytes pass two connections
  of the pods' network and three processes, the peer's one of loopback and two. All that send a file
  give the kernel 256 KiB at a time. An upload ends in a file, and so does its peer's
  copy, on this machine's disk; what is read is dropped on both sides.
- P5: a Sandbox is created and its ` + "`bash`" + ` called at once; the clock stops at the
  result. The peer is a pod with the very spec that Berth made, created by hand; the
  clock stops when a watch sees it Ready. Images are on the node. Each is gone
  before the next starts. The kubelet probes once a second, so the times of both
  gather around two peaks, and a median would jump from one to the other: hence
  means.
- P8: the gateway's largest replica before the run's first call, by its metrics; the
  agent by ` + "`/proc/1/status`" + ` in its pod.
- P8, reads: eight callers read one artifact of 8 MiB for 5 s, without a pause, through one
  replica; the most that its metrics showed meanwhile, less what they showed before.
- The levels of a call take turns like the sides of a ratio, on one session. What a
  process uses is its own processor time over 2000 calls through the gateway.
- The profiles are of the benchmarks ` + "`BenchmarkLive`" + ` (gateway) and ` + "`BenchmarkExecTrue`" + `
  (sandbox-agent): the same programs on loopback, without a cluster. ` + "`make profiles`" + `
  leaves them in ` + "`dist/profiles`" + ` for ` + "`go tool pprof`" + `.
`

// page is docs/performance.md.
func page(machine, server string, results []result, spent *breakdown) []byte {
	var out bytes.Buffer
	out.WriteString(intro)
	fmt.Fprintf(&out, "Machine: %s. Kubernetes %s.\n\n", machine, server)
	out.WriteString("| | measure | | goal | | Berth | peer |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		verdict := "met"
		if !r.OK {
			verdict = "**missed**"
		}
		fmt.Fprintf(&out, "| %s | %s | %.3g%s | %s | %s | %s | %s |\n",
			r.ID, r.Measure, r.Value, r.unit(), r.Goal, verdict, r.ours, r.theirs)
	}
	spent.write(&out)
	out.WriteString(method)
	return out.Bytes()
}

// write adds the section that says where a call's time goes.
func (b *breakdown) write(out *bytes.Buffer) {
	fmt.Fprintf(out, "\n## Where a call's time goes\n\n`bash true` through the gateway, %s (p50):\n\n", milliseconds(b.whole))
	out.WriteString("| part | p50 | measured as |\n|---|---|---|\n")
	for _, p := range b.parts {
		fmt.Fprintf(out, "| %s | %s | %s |\n", p.name, milliseconds(p.time), p.how)
	}
	out.WriteString("\nProcessor time of each process per call: ")
	for i, p := range b.used {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(out, "%s %s", p.name, milliseconds(p.time))
	}
	out.WriteString(".\n")
	for _, p := range b.profiles {
		fmt.Fprintf(out, "\nWhat the %s uses it for:", p.of)
		for i, s := range p.shares {
			if i > 0 {
				out.WriteString(",")
			}
			fmt.Fprintf(out, " %s %.0f %%", s.name, s.percent)
		}
		out.WriteString(".\n")
	}
}

// machine describes what the run was made on: processors, memory, kernel, and how
// busy it was.
func machine() string {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return fmt.Sprintf("%d x %s, %s of memory, Linux %s, load %s at the end of the run", runtime.NumCPU(),
		fieldOf("/proc/cpuinfo", "model name"), fieldOf("/proc/meminfo", "MemTotal"),
		firstLine("/proc/sys/kernel/osrelease"), load)
}

// fieldOf gives the value of the first line "name: value" of a file of /proc.
func fieldOf(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return line
}
