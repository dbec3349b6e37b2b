package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// prepare makes cmd run shell commands in its namespaces, before it becomes the
// program. The last of them may be an exec of its own.
func prepare(cmd *exec.Cmd, commands []string) {
	if len(commands) == 0 {
		return
	}
	script := strings.Join(append(commands, `exec "$0" "$@"`), " && ")
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// asUser starts an agent as a pod does: of a user that isn't root and may not
// become it (but see escalates). Its workspace is on a file system of its own, seen by it alone.
// more are shell commands, as root.
func asUser(t testing.TB, o agentOptions, more ...string) *agent {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user and to mount")
	}
	o.args = append(o.args, "--workspace="+userWorkspace)
	o.environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + userWorkspace}
	o.within = append(o.within,
		"mount --make-rprivate /", "mount -t proc proc /proc", "mount -t tmpfs -o mode=755 none /mnt",
		": > /mnt/agent", `mount --bind "$0" /mnt/agent`, "mkdir "+userWorkspace, "chown 1000:1000 "+userWorkspace)
	o.within = append(o.within, more...)
	strict := "--bounding-set=-all --inh-caps=-all --no-new-privs"
	if o.escalates {
		strict = "--inh-caps=-all"
	}
	o.within = append(o.within, "unset BERTH_REEXECUTED", "cd /",
		`exec setpriv --reuid=1000 --regid=1000 --clear-groups `+strict+` /mnt/agent "$@"`)
	return startAgent(t, o)
}

const userWorkspace = "/mnt/workspace"
