//go:build linux

package standalone_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// nobody has no rights.
const nobody = 65534

// Sessions without a cluster are as those in pods, for root and for a user without
// rights.
func TestSessionsWithoutACluster(t *testing.T) {
	t.Parallel()
	users := map[string]int{"this user": os.Getuid()}
	if os.Getuid() == 0 {
		users["nobody"] = nobody
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, temporary(t, user), user)
			for _, c := range []struct {
				name string
				test func(*testing.T, *gateway)
			}{
				{"a session lasts", lasts},
				{"sessions are apart", apart},
				{"nothing of the gateway's is in a session", nothingOfTheGateways},
				{"files come in, are read and go out", filesInAndOut},
				{"background processes", backgroundProcesses},
				{"many first calls make one session", oneOfMany},
				{"a session that was deleted begins afresh", afresh},
				{"a session that is deleted ends its commands", endsCommands},
				{"an agent that was killed is started again", startedAgain},
			} {
				t.Run(c.name, func(t *testing.T) {
					same := *g
					same.t = t
					c.test(t, &same)
				})
			}
			if !strings.Contains(g.said.String(), "NO SECURITY BOUNDARY") {
				t.Error("the log doesn't say that this is no security boundary")
			}
		})
	}
}

func lasts(t *testing.T, g *gateway) {
	g.bash("lasts", "x=5; mkdir d; cd d; f() { echo f$x; }")
	if got := g.bash("lasts", "pwd; f; echo $HOME"); got != "/workspace/d\nf5\n/workspace" {
		t.Errorf("got %q", got)
	}
}

func apart(t *testing.T, g *gateway) {
	g.bash("one", "x=1; echo one > /workspace/f; echo one > /tmp/f; sleep 1000 & echo $!")
	if got := g.bash("two", `echo "$x"; ls -A /workspace /tmp; ps -e -o comm= | grep -c sleep || true`); got != "/tmp:\n\n/workspace:\n0" {
		t.Errorf("session two sees %q", got)
	}
	if got := g.bash("one", "cat /workspace/f /tmp/f"); got != "one\none" {
		t.Errorf("session one has %q", got)
	}
}

func nothingOfTheGateways(t *testing.T, g *gateway) {
	got := g.bash("inside", `env | grep -e BERTH -e SECRET; ls `+g.tmp+` 2>/dev/null; ls /proc/self/fd | wc -l; echo $PPID`)
	if got != "4\n1" {
		t.Errorf("got %q", got)
	}
	if os.Getuid() == 0 && g.cmd.SysProcAttr.Credential == nil {
		return // root has all capabilities
	}
	if got := g.bash("inside", "grep -E 'Cap(Eff|Amb)' /proc/self/status | tr -d '0\\n\\t '"); got != "CapEff:CapAmb:" {
		t.Errorf("a command has capabilities: %s", got)
	}
}

func filesInAndOut(t *testing.T, g *gateway) {
	status, answer, err := g.http(http.MethodPost, "/sessions/files/files?name=a.txt", "", "application/octet-stream", "from outside\n")
	if err != nil || status != http.StatusCreated || !strings.Contains(answer, `"/workspace/uploads/a.txt"`) {
		t.Fatalf("upload: %d %s %v", status, answer, err)
	}
	g.bash("files", "echo from inside >> uploads/a.txt")
	for _, name := range []string{"/workspace/uploads/a.txt", "uploads/a.txt"} {
		if r := g.tool("files", "read_file", map[string]any{"path": name}); r.StructuredContent.Content != "from outside\nfrom inside\n" {
			t.Errorf("%s holds %+v", name, r.StructuredContent)
		}
	}
	uri := g.tool("files", "export_artifact", map[string]any{"path": "/workspace/uploads/a.txt"}).StructuredContent.URI
	status, answer, err = g.http(http.MethodGet, "/artifacts/"+path.Base(uri), "", "", "")
	if err != nil || status != http.StatusOK || answer != "from outside\nfrom inside\n" {
		t.Errorf("artifact %s: %d %q %v", uri, status, answer, err)
	}
}

func backgroundProcesses(t *testing.T, g *gateway) {
	id := g.tool("background", "bash", map[string]any{"command": "read line; echo got $line", "background": true}).StructuredContent.ProcessID
	g.tool("background", "process_input", map[string]any{"process_id": id, "input": "it\n"})
	if r := g.tool("background", "process_output", map[string]any{"process_id": id, "wait": 10}); r.StructuredContent.Output != "got it\n" {
		t.Errorf("output %+v", r.StructuredContent)
	}
}

func oneOfMany(t *testing.T, g *gateway) {
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			r, err := g.call("many", "bash", map[string]any{"command": "echo . >> calls"})
			if err != nil || r.IsError || r.StructuredContent.Notice != "" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	calls.Wait()
	if got := g.bash("many", "wc -l < calls"); got != "20" {
		t.Errorf("%s of 20 calls came to one session", got)
	}
	if n := strings.Count(g.said.String(), `"Agent started","session":"many"`); n != 1 {
		t.Errorf("%d agents were started", n)
	}
}

func afresh(t *testing.T, g *gateway) {
	g.bash("deleted", "x=5; mkdir -p cache/dir; touch f cache/dir/f; chmod 555 cache/dir cache")
	folders := len(left(t, filepath.Join(g.tmp, left(t, g.tmp)[0])))
	for _, id := range []string{"deleted", "deleted", "never-there"} {
		if status, answer, err := g.http(http.MethodDelete, "/sessions/"+id, "", "", ""); status != http.StatusNoContent || err != nil {
			t.Fatalf("%d %s %v", status, answer, err)
		}
	}
	if now := len(left(t, filepath.Join(g.tmp, left(t, g.tmp)[0]))); now != folders-1 {
		t.Errorf("%d folders of %d are left", now, folders)
	}
	if got := g.bash("deleted", "ls; echo x=$x"); got != "x=" {
		t.Errorf("the new one has %q", got)
	}
}

func endsCommands(t *testing.T, g *gateway) {
	g.bash("ended", "mkfifo runs")
	ended := make(chan *result, 1)
	go func() {
		r, err := g.call("ended", "bash", map[string]any{"command": "echo > runs; sleep 1000"})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	// A FIFO opens when its other side is there.
	if _, err := os.ReadFile(filepath.Join(g.folderOf("ended"), "workspace", "runs")); err != nil {
		t.Fatal(err)
	}
	if status, _, err := g.http(http.MethodDelete, "/sessions/ended", "", "", ""); status != http.StatusNoContent || err != nil {
		t.Error(status, err)
	}
	if r := <-ended; r != nil && (!r.IsError || !strings.Contains(r.text(), "the session was deleted while the call ran")) {
		t.Errorf("the command's result is %+v", r)
	}
}

func startedAgain(t *testing.T, g *gateway) {
	for id, how := range map[string]string{"killed": "signal: killed", "killed-inside": "exit status 137"} {
		g.bash(id, "x=5; echo kept > f")
		outer, inner := g.agentOf(id)
		wait := g.watch([]int{outer, inner})
		victim := outer
		if id == "killed-inside" {
			victim = inner
		}
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait()
		isStartedAgain(t, g, id, how)
	}
}

func isStartedAgain(t *testing.T, g *gateway, id, how string) {
	// The gateway may notice only when it calls, but runs nothing twice by then.
	for tries := 0; ; tries++ {
		r, err := g.call(id, "bash", map[string]any{"command": "cat f; echo x=$x; echo . >> runs"})
		if err != nil {
			t.Fatal(err)
		}
		if r.IsError && tries < 2 {
			continue
		}
		got := r.StructuredContent
		if r.IsError || got.Stdout != "kept\nx=\n" || !strings.Contains(got.Notice, "restarted (AgentEnded: the agent ended: "+how+")") {
			t.Errorf("got %+v", r)
		}
		break
	}
	if got := g.bash(id, "wc -l < runs"); got != "1" {
		t.Errorf("it ran %s times", got)
	}
}

// agentOf returns the processes of a session's agent: the gateway's child, and that
// one's, in the namespaces.
func (g *gateway) agentOf(session string) (outer, inner int) {
	g.t.Helper()
	dir := g.folderOf(session)
	var pids []int
	for _, pid := range g.processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(line, []byte("--session-dir="+dir+"\x00")) {
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 {
		g.t.Fatalf("the agent of %s is %v, want two processes", session, pids)
	}
	if parent(g.t, pids[1]) == g.cmd.Process.Pid {
		return pids[1], pids[0]
	}
	return pids[0], pids[1]
}

func parent(t *testing.T, pid int) (parent int) {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// After the name, in parentheses, come state and parent.
	parent, err = strconv.Atoi(strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// folderOf is what the gateway's log says.
func (g *gateway) folderOf(session string) string {
	g.t.Helper()
	_, rest, _ := strings.Cut(g.said.String(), fmt.Sprintf(`"Agent started","session":%q,"workspace":"`, session))
	workspace, _, ok := strings.Cut(rest, `"`)
	if !ok {
		g.t.Fatalf("the log doesn't tell the workspace of %s", session)
	}
	return filepath.Dir(workspace)
}

// There are no templates: one that is asked for by name is refused, and a session
// isn't made.
func TestTemplatesAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t, temporary(t, os.Getuid()), os.Getuid())
	for template, want := range map[string]string{"default": "", "large": `TemplateNotFound: without a cluster there is no template \"large\"`} {
		g.header = http.Header{"X-Sandbox-Template": {template}}
		r, err := g.call(template, "bash", map[string]any{"command": "true"})
		if err != nil || r.IsError != (want != "") || !strings.Contains(r.text(), strings.ReplaceAll(want, `\`, "")) {
			t.Errorf("%s: %+v, %v", template, r, err)
		}
	}
	if n := strings.Count(g.said.String(), `"Agent started"`); n != 2 {
		t.Errorf("%d agents were started, want the trial and one", n)
	}
}

// One session more than --max-sessions is refused until another one has ended.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	g := start(t, temporary(t, os.Getuid()), os.Getuid(), "--max-sessions=2")
	g.bash("one", "true")
	g.bash("two", "true")
	r, err := g.call("three", "bash", map[string]any{"command": "true"})
	if err != nil || !r.IsError || !strings.Contains(r.text(), "TooManySessions") || !strings.Contains(r.text(), "--max-sessions") {
		t.Errorf("the third: %+v, %v", r, err)
	}
	g.bash("two", "true")
	if status, _, err := g.http(http.MethodDelete, "/sessions/one", "", "", ""); status != http.StatusNoContent || err != nil {
		t.Fatal(status, err)
	}
	g.bash("three", "true")
}
