package main

import (
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// agentProfile names the file for the agent's CPU profile, which go test's
// -cpuprofile doesn't have: the agent is a process of its own.
const agentProfile = "BERTH_TEST_AGENT_PROFILE"

// profileAgent begins the profile of this process, if one is asked for.
func profileAgent() (stop func()) {
	path := os.Getenv(agentProfile)
	if path == "" {
		return func() {}
	}
	file, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		panic(err)
	}
	return func() {
		pprof.StopCPUProfile()
		if err := file.Close(); err != nil {
			panic(err)
		}
	}
}

// BenchmarkExecTrue is P3: one command after the other over HTTP, each with a
// token of its own.
func BenchmarkExecTrue(b *testing.B) {
	path := "PATH=/usr/local/bin:/usr/bin:/bin"
	a := startAgent(b, agentOptions{environ: []string{path, agentProfile + "=" + os.Getenv(agentProfile)}})
	a.run(b, "true")
	measure(b, func() { a.exec(b, client.ExecRequest{Command: "true"}) })
	a.terminate(b)
	if err := <-a.exited; err != nil { // else the profile is whole
		b.Fatalf("agent ended: %v\n%s", err, a.log)
	}
}

// BenchmarkExecAssign is a command that may change the shell, and so has a
// spare forked before it.
func BenchmarkExecAssign(b *testing.B) {
	a := startAgent(b, agentOptions{})
	a.run(b, "true")
	measure(b, func() { a.exec(b, client.ExecRequest{Command: "x=1"}) })
}

// BenchmarkExecTruePaced leaves the shell the time to fork its spare, as a
// caller does who thinks between two commands.
func BenchmarkExecTruePaced(b *testing.B) {
	a := startAgent(b, agentOptions{})
	a.run(b, "true")
	var all []time.Duration
	for b.Loop() {
		b.StopTimer()
		<-time.After(2 * time.Millisecond)
		b.StartTimer()
		began := time.Now()
		a.exec(b, client.ExecRequest{Command: "true"})
		all = append(all, time.Since(began))
	}
	report(b, all)
}

// BenchmarkForkExecTrue is what P3 is compared with.
func BenchmarkForkExecTrue(b *testing.B) {
	measure(b, func() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkHealth is the cost of HTTP alone.
func BenchmarkHealth(b *testing.B) {
	a := startAgent(b, agentOptions{})
	measure(b, func() {
		if _, err := a.client.Health(b.Context(), a.pod); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkColdFirstExec is from the start of the process to its first result.
func BenchmarkColdFirstExec(b *testing.B) {
	measure(b, func() {
		a := startAgent(b, agentOptions{})
		a.run(b, "true")
		_ = a.process.Kill()
	})
}

// BenchmarkOutput is 8 MiB through one result that keeps 256 KiB.
func BenchmarkOutput(b *testing.B) {
	a := startAgent(b, agentOptions{})
	if err := os.WriteFile(a.workspace+"/data", make([]byte, 8<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(8 << 20)
	for b.Loop() {
		a.run(b, "cat data")
	}
}

func measure(b *testing.B, f func()) {
	var all []time.Duration
	for b.Loop() {
		began := time.Now()
		f()
		all = append(all, time.Since(began))
	}
	report(b, all)
}

func report(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}
