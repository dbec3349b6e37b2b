// Package pod makes the pod of a Sandbox from its SandboxTemplate.
//
// Three rules decide every field. Forced: the template has no say (PID 1 is the
// agent, restartPolicy, no service-account token, no service links, all
// capabilities dropped, no privilege escalation, seccomp RuntimeDefault, the
// readiness probe). Defaulted where the template is silent: uid, gid and fsGroup
// 1000, HOME, a read-only root, grace, requests and limits. The template's: all
// else, as it is. What the Pod Security level "restricted" forbids is refused by
// Validate, never quietly changed.
//
// The package is pure: the same input gives the same pod.
package pod
