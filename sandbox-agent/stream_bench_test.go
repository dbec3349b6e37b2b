package main

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

const (
	gibibyte  = 1 << 30
	peerChunk = 256 << 10
)

// BenchmarkStream is P4: a command's GiB of output, to a client that reads
// frames, and the same bytes over one plain TCP connection between two processes,
// in turn. The command is one that costs little: it isn't what is measured.
func BenchmarkStream(b *testing.B) {
	a := startAgent(b, agentOptions{})
	a.run(b, "true")
	var ours, peer time.Duration
	b.SetBytes(gibibyte)
	for b.Loop() {
		began := time.Now()
		plainStream(b)
		peer += time.Since(began)

		var got int64
		began = time.Now()
		r, err := a.client.ExecStream(b.Context(), a.pod, client.ExecRequest{Command: "dd if=/dev/zero bs=1M count=1024 status=none", NoLog: true}, 0, func(_ byte, data []byte) error {
			got += int64(len(data))
			return nil
		})
		ours += time.Since(began)
		if err != nil || got != gibibyte || r.StdoutBytes != gibibyte {
			b.Fatalf("%d bytes came: %v", got, err)
		}
	}
	b.ReportMetric(float64(gibibyte)*float64(b.N)/ours.Seconds()/1e6, "ours-MB/s")
	b.ReportMetric(float64(gibibyte)*float64(b.N)/peer.Seconds()/1e6, "peer-MB/s")
	b.ReportMetric(peer.Seconds()/ours.Seconds(), "ratio")
}

// actAsPeer makes the test binary write a GiB to the address it names.
const actAsPeer = "BERTH_TEST_ACT_AS_PEER"

// plainStream reads a GiB that another process writes.
func plainStream(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{actAsPeer + "=" + l.Addr().String()}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	total, buffer := 0, make([]byte, peerChunk)
	for err == nil {
		var n int
		n, err = conn.Read(buffer)
		total += n
	}
	if err := cmd.Wait(); err != nil || total != gibibyte {
		b.Fatalf("%d bytes came: %v", total, err)
	}
}

// writePeer is the other side of plainStream.
func writePeer(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for buffer, left := make([]byte, peerChunk), gibibyte; left > 0; left -= peerChunk {
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
	}
	return nil
}

func init() {
	if address := os.Getenv(actAsPeer); address != "" {
		if err := writePeer(address); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
}
