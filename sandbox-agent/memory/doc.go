// Package memory tells when the kernel killed a process of the container for
// want of memory, and kills one itself where the kernel would kill them all.
//
// On cgroup v1 the kernel's OOM killer takes one process. On v2 the kubelet
// groups a container's (memory.oom.group), so that all die. The kernel gives no
// early warning that an unprivileged container could wait for; but a charge that
// fails at the limit is told as an event before the kernel gives up, so that there
// is a moment in which to kill the one that grows. A process that grows faster
// than that moment takes the container along.
package memory
