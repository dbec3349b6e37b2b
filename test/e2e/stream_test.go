package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// untilTold writes something and goes on only once release was called.
const untilTold = "echo begun; echo aside >&2; until [ -e go ]; do sleep 0.1; done; echo ended"

// release lets untilTold go on.
func (t *tenant) release(ctx context.Context, id string) error {
	_, err := admin.Exec(ctx, t.podOf(ctx, id), v1alpha1.SessionContainerName, "touch", "/workspace/go")
	return err
}

// streamUntilTold runs untilTold, which ends only if its output is told before.
func (t *tenant) streamUntilTold(ctx context.Context, s *session.Session, id string) (session.Result, error) {
	var told strings.Builder
	var once sync.Once
	released := make(chan error, 1)
	result, err := s.Stream(ctx, untilTold, func(text string) {
		told.WriteString(text)
		if strings.Contains(told.String(), "begun\n") && strings.Contains(told.String(), "aside\n") {
			once.Do(func() { go func() { released <- t.release(ctx, id) }() })
		}
	})
	once.Do(func() { released <- errors.New("its output was not told") })
	return result, errors.Join(err, <-released)
}

var _ = Describe("The output of a command", func() {
	for _, protocol := range []string{session.Legacy, session.Modern} {
		It("is told while the command runs: Go, "+protocol, func(ctx context.Context) {
			t := newTenant(ctx)
			target := t.target("s")
			target.Protocol = protocol
			s := connect(ctx, target)
			run(ctx, s, "true")
			result, err := t.streamUntilTold(ctx, s, "s")
			Expect(err).NotTo(HaveOccurred())
			Expect(result.ExitCode).To(BeZero())
			Expect(result.Stdout).To(Equal("begun\nended\n"), "the result has it all")
			Expect(result.Stderr).To(Equal("aside\n"))
		}, SpecTimeout(specTimeout))
	}

	for _, client := range []struct{ name, program, protocol string }{
		{"TypeScript SDK v1", "typescript-v1.mjs", ""},
		{"TypeScript SDK v2, of its default era", "typescript-v2.mjs", ""},
		{"TypeScript SDK v2, of the new era", "typescript-v2.mjs", session.Modern},
	} {
		It("is told while the command runs: "+client.name, func(ctx context.Context) {
			t := newTenant(ctx)
			run(ctx, connect(ctx, t.target("s")), "true")
			arguments, err := json.Marshal(map[string]string{"command": untilTold})
			Expect(err).NotTo(HaveOccurred())
			command := nodeCommand(ctx, typescriptEnv(t.target("s"), client.protocol), client.program, "stream", "bash", string(arguments))
			command.Stderr = GinkgoWriter
			output, err := command.StdoutPipe()
			Expect(err).NotTo(HaveOccurred())
			Expect(command.Start()).To(Succeed())

			lines := bufio.NewScanner(output)
			var told string
			var before float64
			var result session.Result
			for lines.Scan() {
				var line struct {
					Progress          float64        `json:"progress"`
					Message           string         `json:"message"`
					StructuredContent session.Result `json:"structuredContent"`
				}
				Expect(json.Unmarshal(lines.Bytes(), &line)).To(Succeed(), lines.Text())
				if line.Progress == 0 {
					result = line.StructuredContent
					continue
				}
				Expect(line.Progress).To(BeNumerically(">", before), "progress only ever grows")
				before = line.Progress
				told += line.Message
				if strings.Contains(told, "begun\n") && strings.Contains(told, "aside\n") {
					Expect(t.release(ctx, "s")).To(Succeed())
				}
			}
			Expect(lines.Err()).NotTo(HaveOccurred())
			Expect(command.Wait()).To(Succeed())
			Expect(result.Stdout).To(Equal("begun\nended\n"))
		}, SpecTimeout(specTimeout))
	}
})
