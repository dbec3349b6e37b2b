package pod_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/controllers/sandbox/pod"
	"github.com/berth-dev/berth/test/builders"
)

func template() *builders.Template { return builders.MakeTemplate("default", "team") }

func onPod(change func(*corev1.PodSpec)) *v1alpha1.SandboxTemplate {
	return template().Pod(func(p *corev1.PodTemplateSpec) { change(&p.Spec) }).Obj()
}

func onSession(change func(*corev1.Container)) *v1alpha1.SandboxTemplate {
	return template().Session(change).Obj()
}

func onSecurity(change func(*corev1.SecurityContext)) *v1alpha1.SandboxTemplate {
	return onSession(func(c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{}
		change(c.SecurityContext)
	})
}

func hostPath() corev1.Volume {
	return corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}
}

func TestValidateRefusesAndNamesTheField(t *testing.T) {
	t.Parallel()
	sidecar := func(c corev1.Container) *v1alpha1.SandboxTemplate {
		return onPod(func(s *corev1.PodSpec) { s.Containers = append(s.Containers, c) })
	}
	cases := map[string]struct {
		template *v1alpha1.SandboxTemplate
		want     string
	}{
		"no session container": {onPod(func(s *corev1.PodSpec) { s.Containers[0].Name = "other" }), `spec.podTemplate.spec.containers: Required value: one container must be named "sandbox"`},
		"no image":             {onSession(func(c *corev1.Container) { c.Image = "" }), "containers[0].image: Required"},
		"command":              {onSession(func(c *corev1.Container) { c.Command = []string{"sh"} }), "containers[0].command: Forbidden"},
		"args":                 {onSession(func(c *corev1.Container) { c.Args = []string{"x"} }), "containers[0].args: Forbidden"},
		"berth label":          {template().Pod(func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{"berth.dev/sandbox": "x"} }).Obj(), "metadata.labels[berth.dev/sandbox]: Forbidden"},
		"berth annotation":     {template().Pod(func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"berth.dev/key-id": "x"} }).Obj(), "metadata.annotations[berth.dev/key-id]: Forbidden"},
		"berth env":            {onSession(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "BERTH_PUBLIC_KEYS", Value: "mine"}} }), "containers[0].env[0].name: Forbidden"},
		"mount over workspace": {onSession(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/workspace/"}}
		}), "volumeMounts[0].mountPath: Forbidden"},
		"mount over the agent": {onSession(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/.berth/berth-agent"}}
		}), "volumeMounts[0].mountPath: Forbidden"},
		"agent's volume elsewhere": {onSession(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "berth-agent", MountPath: "/mine"}}
		}), "containers[0].volumeMounts[0].name: Forbidden"},
		"agent's volume in a helper": {sidecar(corev1.Container{Name: "proxy", Image: "x", VolumeMounts: []corev1.VolumeMount{{Name: "berth-agent", MountPath: "/mine"}}}), "containers[1].volumeMounts[0].name: Forbidden"},
		"reserved volume":            {onPod(func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "berth-agent"}} }), "volumes[0].name: Forbidden"},
		"reserved container":         {sidecar(corev1.Container{Name: "berth-agent-install", Image: "x"}), "containers[1].name: Forbidden"},
		"service-account token": {onPod(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}},
			}}}}
		}), "volumes[0].projected.sources[0].serviceAccountToken: Forbidden"},
		"ephemeral containers": {onPod(func(s *corev1.PodSpec) { s.EphemeralContainers = []corev1.EphemeralContainer{{}} }), "ephemeralContainers: Forbidden"},
		"windows":              {onPod(func(s *corev1.PodSpec) { s.OS = &corev1.PodOS{Name: corev1.Windows} }), "os.name: Unsupported value"},
		"unconfined seccomp": {onSecurity(func(s *corev1.SecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}), "containers[0].securityContext.seccompProfile.type: Unsupported value"},
		"hostNetwork":           {onPod(func(s *corev1.PodSpec) { s.HostNetwork = true }), "spec.hostNetwork: Forbidden"},
		"hostPID":               {onPod(func(s *corev1.PodSpec) { s.HostPID = true }), "spec.hostPID: Forbidden"},
		"hostIPC":               {onPod(func(s *corev1.PodSpec) { s.HostIPC = true }), "spec.hostIPC: Forbidden"},
		"shareProcessNamespace": {onPod(func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(true) }), "spec.shareProcessNamespace: Forbidden"},
		"hostPath":              {onPod(func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{hostPath()} }), "volumes[0].hostPath: Forbidden"},
		"hostPort":              {onSession(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} }), "containers[0].ports[0].hostPort: Forbidden"},
		"privileged":            {onSecurity(func(s *corev1.SecurityContext) { s.Privileged = ptr.To(true) }), "securityContext.privileged=true"},
		"privilege escalation":  {onSecurity(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = ptr.To(true) }), "securityContext.allowPrivilegeEscalation=false"},
		"added capability": {onSecurity(func(s *corev1.SecurityContext) {
			s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
		}), "SYS_ADMIN"},
		"root user":          {onSecurity(func(s *corev1.SecurityContext) { s.RunAsUser = ptr.To[int64](0) }), "runAsUser=0"},
		"runAsNonRoot false": {onPod(func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(false)} }), "runAsNonRoot"},
		"procMount":          {onSecurity(func(s *corev1.SecurityContext) { s.ProcMount = ptr.To(corev1.UnmaskedProcMount) }), "procMount"},
		"sysctl": {onPod(func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}), "kernel.msgmax"},
		"nfs volume": {onPod(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "n", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}}}
		}), `volume "n" uses restricted volume type "nfs"`},
		"windows host process": {onSecurity(func(s *corev1.SecurityContext) {
			s.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true)}
		}), "hostProcess"},
		"privileged in a helper": {sidecar(corev1.Container{Name: "proxy", Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}), `container "proxy"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := pod.Validate(c.template, imageVolume)
			if len(errs) == 0 {
				t.Fatalf("the template was accepted, want an error with %q", c.want)
			}
			if got := errs.ToAggregate().Error(); !strings.Contains(got, c.want) {
				t.Errorf("error does not name the field %q:\n%s", c.want, got)
			}
		})
	}
}

func TestHostAccessIsAllowedByTheFlagOnly(t *testing.T) {
	t.Parallel()
	asks := onPod(func(s *corev1.PodSpec) {
		s.HostNetwork, s.HostPID, s.HostIPC, s.ShareProcessNamespace = true, true, true, ptr.To(true)
		s.Volumes = []corev1.Volume{hostPath()}
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	})
	if errs := pod.Validate(asks, imageVolume); len(errs) != 6 {
		t.Errorf("without the flag: got %d errors, want one for each of the six fields: %v", len(errs), errs.ToAggregate())
	}
	allowed := imageVolume
	allowed.AllowHostAccess = true
	if errs := pod.Validate(asks, allowed); len(errs) > 0 {
		t.Errorf("with the flag: %v", errs.ToAggregate())
	}
	privileged := onSecurity(func(s *corev1.SecurityContext) { s.Privileged = ptr.To(true) })
	if errs := pod.Validate(privileged, allowed); len(errs) == 0 {
		t.Error("the flag let a privileged container pass")
	}
}
