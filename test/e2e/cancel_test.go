package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// deadTime is how soon after a cancellation a command is to be dead.
const deadTime = 5 * time.Second

var _ = Describe("A notification that a call was cancelled", func() {
	It("ends it through another replica of the gateway than the call's, and keeps the shell", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(len(t.gateways)).To(BeNumerically(">=", 2), "replicas of the gateway")
		s := connect(ctx, t.targetAt(1, "s"))
		run(ctx, s, "kept=yes")
		called := make(chan string, 1)
		go func() {
			_, answer := postMessage(ctx, t.targetAt(0, "s"), `{"jsonrpc":"2.0","id":"call-7","method":"tools/call","params":{"name":"bash","arguments":{"command":"echo >>began; sleep 777; echo >>over"}}}`)
			called <- answer
		}()
		Eventually(func() error { _, err := s.ReadFile(ctx, "began", nil); return err }).
			WithTimeout(readyTimeout).WithPolling(interval).Should(Succeed())

		cancelled := time.Now()
		status, answer := postMessage(ctx, t.targetAt(1, "s"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call-7"}}`)
		Expect(status).To(Equal(http.StatusAccepted), answer)
		Eventually(called).WithTimeout(deadTime).Should(Receive(ContainSubstring("The command was cancelled.")))
		Expect(run(ctx, s, "echo $kept; ls over 2>/dev/null; ps -e | grep -c '[s]leep 777' || true")).To(Equal("yes\n0\n"))
		Expect(time.Since(cancelled)).To(BeNumerically("<", deadTime), "until the next command had run")
	}, SpecTimeout(specTimeout))
})

// postMessage sends one message of the older era, and gives status and body of its answer.
func postMessage(ctx context.Context, target session.Target, message string) (status int, answer string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+target.Address+"/mcp", strings.NewReader(message))
	if err != nil {
		return 0, err.Error()
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + target.Token, session.Header: target.ID, "Mcp-Protocol-Version": session.Legacy,
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, fmt.Sprintf("%s: %v", body, err)
	}
	return response.StatusCode, string(body)
}
