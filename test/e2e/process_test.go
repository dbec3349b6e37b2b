package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// pollSeconds is how long one call waits for a process's output.
const pollSeconds = 10

// readUntil polls a process's output until it holds text, or the process ends,
// and gives all of it.
func readUntil(ctx context.Context, s *session.Session, id, text string) (all string, last session.Output) {
	GinkgoHelper()
	for {
		var err error
		last, err = s.Output(ctx, id, last.NextOffset, pollSeconds)
		Expect(err).NotTo(HaveOccurred())
		all += last.Output
		if text != "" && strings.Contains(all, text) || !last.Running && last.Output == "" {
			Expect(all).To(ContainSubstring(text))
			return all, last
		}
	}
}

// readToEnd gives what a process has still to say, and its exit code.
func readToEnd(ctx context.Context, s *session.Session, id string) (all string, exitCode int) {
	GinkgoHelper()
	all, last := readUntil(ctx, s, id, "")
	Expect(last.ExitCode).NotTo(BeNil(), "%s has ended", id)
	return all, *last.ExitCode
}

// server is a process that other commands can talk to. It says when it listens.
const server = `exec python3 -u -c '
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"served\n")
    def log_message(self, *arguments): print("asked for", self.path)
with http.server.HTTPServer(("127.0.0.1", 8000), Handler) as httpd:
    print("listening")
    httpd.serve_forever()
'`

// ask talks to it.
const ask = `python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8000/%s").read().decode(), end="")'`

var _ = Describe("A background process", func() {
	It("is a server that later calls use, whose output is polled, and that a signal ends", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox")))
		s := connect(ctx, t.target("s"))
		run(ctx, s, "cd /tmp; export NAME=kept")
		id, err := s.Start(ctx, `echo "$PWD $NAME"; `+server, false)
		Expect(err).NotTo(HaveOccurred())
		said, at := readUntil(ctx, s, id, "listening\n")
		Expect(said).To(Equal("/tmp kept\nlistening\n"))

		Expect(run(ctx, s, fmt.Sprintf(ask, "path"))).To(Equal("served\n"))
		next, err := s.Output(ctx, id, at.NextOffset, pollSeconds)
		Expect(err).NotTo(HaveOccurred())
		Expect(next.Output).To(Equal("asked for /path\n"))
		Expect(next.Running).To(BeTrue())

		// A command that is killed takes what it started along, and nothing else.
		result, err := s.Bash(ctx, "kill -9 $BASHPID")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).To(Equal(137))
		Expect(run(ctx, s, fmt.Sprintf(ask, "again"))).To(Equal("served\n"))

		Expect(s.Signal(ctx, id, "TERM")).To(Succeed())
		_, code := readToEnd(ctx, s, id)
		Expect(code).To(Equal(143))
		processes, err := s.Processes(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(processes).To(ConsistOf(And(HaveField("ID", id), HaveField("Running", false), HaveField("ExitCode", HaveValue(Equal(143))))))
	}, SpecTimeout(specTimeout))

	It("outlives the call that started it, a time-out and its kill", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		id, err := s.Start(ctx, "echo begun; sleep 300", false)
		Expect(err).NotTo(HaveOccurred())
		readUntil(ctx, s, id, "begun\n")
		result, err := s.BashWithin(ctx, "sleep 60", time.Second)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.TimedOut).To(BeTrue())
		output, err := s.Output(ctx, id, 0, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(output.Running).To(BeTrue())
	}, SpecTimeout(specTimeout))

	It("reads what it is given, to the end", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		id, err := s.Start(ctx, `while read line; do echo "got $line"; done; echo over; exit 3`, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Input(ctx, id, map[string]any{"input": "one\n"})).To(Succeed())
		_, at := readUntil(ctx, s, id, "got one\n")
		Expect(s.Input(ctx, id, map[string]any{"input": "two\n", "eof": true})).To(Succeed())
		all, code := readToEnd(ctx, s, id)
		Expect(all).To(HaveSuffix("got two\nover\n"))
		Expect(code).To(Equal(3))
		Expect(at.Offset).To(BeZero())
	}, SpecTimeout(specTimeout))

	It("has a terminal if asked for, of a size that can change", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox")))
		s := connect(ctx, t.target("s"))
		id, err := s.Start(ctx, `[ -t 0 ] && [ -t 1 ] && stty size; while read line; do echo "got $line"; stty size; done`, true)
		Expect(err).NotTo(HaveOccurred())
		readUntil(ctx, s, id, "24 80\r\n")
		Expect(s.Input(ctx, id, map[string]any{"rows": 50, "cols": 132, "input": "typed\n"})).To(Succeed())
		readUntil(ctx, s, id, "got typed\r\n50 132\r\n")
		Expect(s.Input(ctx, id, map[string]any{"input": "\x03"})).To(Succeed(), "as Ctrl-C")
		_, code := readToEnd(ctx, s, id)
		Expect(code).To(Equal(130))
	}, SpecTimeout(specTimeout))

	It("is gone with its session", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		id, err := s.Start(ctx, "sleep 300", false)
		Expect(err).NotTo(HaveOccurred())
		Expect(session.End(ctx, t.target("s"))).To(Equal(http.StatusNoContent))
		_, err = s.Output(ctx, id, 0, 0)
		Expect(err).To(MatchError(ContainSubstring("has no sandbox")), "asking starts none")

		run(ctx, s, "true")
		processes, err := s.Processes(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(processes).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("left behind by a command is listed as a job, and its output never reaches a later result", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		run(ctx, s, "(until [ -e go ]; do sleep 0.1; done; echo late) &")
		Expect(t.release(ctx, "s")).To(Succeed())
		processes, err := s.Processes(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(processes).To(HaveLen(1))
		Expect(processes[0].Kind).To(Equal("job"))
		readUntil(ctx, s, processes[0].ID, "late\n")
		Expect(run(ctx, s, "echo mine")).To(Equal("mine\n"))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("A background process, when all replicas of the gateway restart", Serial, func() {
	It("runs on, and any of them tells of it", func(ctx context.Context) {
		t := newTenant(ctx)
		s := connect(ctx, t.target("s"))
		id, err := s.Start(ctx, "echo before; until [ -e go ]; do sleep 0.1; done; echo after", false)
		Expect(err).NotTo(HaveOccurred())
		_, at := readUntil(ctx, s, id, "before\n")

		restart(ctx, "gateway")
		t.gateways = forwardGateways(ctx)
		for replica := range t.gateways {
			output, err := connect(ctx, t.targetAt(replica, "s")).Output(ctx, id, at.NextOffset, 0)
			Expect(err).NotTo(HaveOccurred())
			Expect(output.Running).To(BeTrue())
		}
		s = connect(ctx, t.target("s"))
		run(ctx, s, "touch go")
		all, code := readToEnd(ctx, s, id)
		Expect(all).To(Equal("before\nafter\n"))
		Expect(code).To(BeZero())
	}, SpecTimeout(specTimeout))
})
