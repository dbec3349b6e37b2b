package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/session"
)

// taskAfter is a little more than the gateway's --task-after.
const taskAfter = 6 * time.Second

// task is what is read of a task, and of an error in its place.
type task struct {
	ID            string `json:"taskId"`
	ResultType    string `json:"resultType"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage"`
	Result        struct {
		StructuredContent session.Result `json:"structuredContent"`
	} `json:"result"`
}

var _ = Describe("A client that knows tasks", func() {
	It("gets one for a long command, by which any replica tells, cancels and knows what was lost", func(ctx context.Context) {
		t := newTenant(ctx)
		Expect(len(t.gateways)).To(BeNumerically(">=", 2), "replicas of the gateway")
		here, there := t.targetAt(0, ""), t.targetAt(1, "")

		// The commands of all sessions become tasks in the same seconds.
		commands := map[string]string{
			"ends":      "kept=yes; until [ -e go ]; do sleep 0.1; done; echo done; echo late >&2; (exit 3)",
			"cancelled": "sleep 777; touch over",
			"restarted": "echo mine >file; sleep 777",
		}
		begun := map[string]chan task{}
		for id, command := range commands {
			shell := connect(ctx, t.targetAt(0, id))
			if id == "cancelled" {
				run(ctx, shell, "kept=yes")
			}
			begun[id] = make(chan task, 1)
			go func() {
				defer GinkgoRecover()
				begun[id] <- bashTask(ctx, t.targetAt(0, id), map[string]any{"command": command})
			}()
		}
		tasks := map[string]task{}
		for id := range commands {
			var begins task
			Eventually(begun[id]).WithTimeout(readyTimeout+taskAfter).Should(Receive(&begins), id)
			tasks[id] = begins
		}

		By("telling through another replica how it ended")
		ends := connect(ctx, t.targetAt(1, "ends"))
		Expect(getTask(ctx, there, tasks["ends"].ID).Status).To(Equal("working"))
		Expect(ends.WriteFile(ctx, "go", "")).To(Succeed())
		done := ended(ctx, there, tasks["ends"].ID)
		Expect(done.Status).To(Equal("completed"), done.StatusMessage)
		Expect(done.Result.StructuredContent).To(Equal(session.Result{Stdout: "done\n", Stderr: "late\n", ExitCode: 3}))
		Expect(getTask(ctx, here, tasks["ends"].ID)).To(Equal(done), "it is kept, and told again")
		Expect(run(ctx, ends, "echo $kept")).To(Equal("yes\n"))

		By("cancelling one through another replica")
		asked := time.Now()
		askTask(ctx, there, "tasks/cancel", tasks["cancelled"].ID)
		Expect(ended(ctx, here, tasks["cancelled"].ID).Status).To(Equal("cancelled"))
		cancelled := connect(ctx, t.targetAt(1, "cancelled"))
		Expect(run(ctx, cancelled, "echo $kept; ls over 2>/dev/null; ps -e | grep -c '[s]leep 777' || true")).To(Equal("yes\n0\n"))
		Expect(time.Since(asked)).To(BeNumerically("<", deadTime), "until the next command had run")

		By("being one at once in the background")
		server := bashTask(ctx, t.targetAt(0, "cancelled"), map[string]any{"command": "read line; echo got $line", "background": true})
		processes, err := cancelled.Processes(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(processes).To(HaveLen(1))
		Expect(server.StatusMessage).To(ContainSubstring(processes[0].ID))
		Expect(cancelled.Input(ctx, processes[0].ID, map[string]any{"input": "it\n"})).To(Succeed())
		done = ended(ctx, there, server.ID)
		Expect(done.Status).To(Equal("completed"), done.StatusMessage)
		Expect(done.Result.StructuredContent.Stdout).To(Equal("got it\n"))

		By("having failed with a container that was killed")
		killContainer(ctx, t.podOf(ctx, "restarted"), v1alpha1.SessionContainerName)
		failed := ended(ctx, there, tasks["restarted"].ID)
		Expect(failed.Status).To(Equal("failed"))
		Expect(failed.StatusMessage).To(And(ContainSubstring("restarted"), ContainSubstring("workspace are kept")))
		askTask(ctx, here, "tasks/cancel", tasks["restarted"].ID) // nothing is left to end
		restarted := connect(ctx, t.targetAt(1, "restarted"))
		Expect(run(ctx, restarted, "cat file")).To(Equal("mine\n"))
	}, SpecTimeout(specTimeout))
})

// bashTask calls bash, which is to be answered with a task.
func bashTask(ctx context.Context, target session.Target, arguments map[string]any) task {
	GinkgoHelper()
	t := modernRequest(ctx, target, "tools/call", "bash", map[string]any{"name": "bash", "arguments": arguments})
	Expect(t.ResultType).To(Equal("task"), "%+v", t)
	Expect(t.Status).To(Equal("working"))
	return t
}

func getTask(ctx context.Context, target session.Target, id string) task {
	GinkgoHelper()
	return askTask(ctx, target, "tasks/get", id)
}

func askTask(ctx context.Context, target session.Target, method, id string) task {
	GinkgoHelper()
	t := modernRequest(ctx, target, method, id, map[string]any{"taskId": id})
	Expect(t.ResultType).To(Equal("complete"))
	return t
}

// ended asks for a task until it has ended, and gives how.
func ended(ctx context.Context, target session.Target, id string) (t task) {
	GinkgoHelper()
	Eventually(func() string { t = getTask(ctx, target, id); return t.Status }).
		WithContext(ctx).WithTimeout(readyTimeout).WithPolling(interval).ShouldNot(Equal("working"))
	return t
}

// modernRequest sends one request of the newer era as a client that declares the
// extension, and gives its result.
func modernRequest(ctx context.Context, target session.Target, method, name string, params map[string]any) task {
	GinkgoHelper()
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    session.Modern,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+target.Address+"/mcp", strings.NewReader(string(body)))
	Expect(err).NotTo(HaveOccurred())
	for name, value := range map[string]string{
		"Authorization": "Bearer " + target.Token, "Mcp-Protocol-Version": session.Modern, "Mcp-Method": method, "Mcp-Name": name,
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		request.Header.Set(name, value)
	}
	if target.ID != "" {
		request.Header.Set(session.Header, target.ID)
	}
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	var reply struct {
		Result *task
		Error  json.RawMessage
	}
	Expect(json.Unmarshal(eventData(string(answer)), &reply)).To(Succeed(), "%d: %s", response.StatusCode, answer)
	Expect(reply.Result).NotTo(BeNil(), fmt.Sprintf("%s: %d: %s", method, response.StatusCode, reply.Error))
	return *reply.Result
}

// eventData is the message of an answer, which may be the only event of a stream.
func eventData(answer string) []byte {
	for line := range strings.Lines(answer) {
		if data, is := strings.CutPrefix(line, "data: "); is {
			return []byte(data)
		}
	}
	return []byte(answer)
}
