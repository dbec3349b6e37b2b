package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/s3server"
)

// componentFolder is what the documentation tells administrators to copy.
const componentFolder = "../../config/artifact-store"

// install gives the gateway the store, until the container of specs ends, as
// docs/operations.md tells an administrator to.
func (s *s3Pod) install(ctx context.Context) {
	GinkgoHelper()
	authority, err := os.ReadFile(filepath.Join(s.dir, "ca.pem"))
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: "berth-artifact-store"},
		StringData: map[string]string{"access-key": storeAccessKey, "secret-key": storeSecretKey, "ca.pem": string(authority)},
	}
	Expect(admin.Create(ctx, secret)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, secret)).To(Succeed()) }, NodeTimeout(cleanUpTimeout))

	gateway := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"}, gateway)).To(Succeed())
	built := filepath.Join(s.dir, "built.yaml")
	kubectl(ctx, "kustomize", s.overlay(gateway), "--output", built)
	objects, err := cluster.Objects(built, "")
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).To(HaveLen(3), "the Deployment, the ConfigMap and the NetworkPolicy")
	DeferCleanup(restoreGateway, gateway.Spec, NodeTimeout(rolloutTimeout))
	for _, object := range objects {
		Expect(admin.ApplyObject(ctx, object)).To(Succeed())
		if object.GetKind() != "Deployment" {
			DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, object)).To(Succeed()) }, NodeTimeout(cleanUpTimeout))
		}
	}
	waitRollout(ctx, gateway.Name)
}

// overlay makes one of the gateway, as it is installed, and a copy of the
// component that is filled in, and gives its folder.
func (s *s3Pod) overlay(gateway *appsv1.Deployment) string {
	GinkgoHelper()
	folder := filepath.Join(s.dir, "overlay")
	Expect(os.CopyFS(filepath.Join(folder, "artifact-store"), os.DirFS(componentFolder))).To(Succeed())
	s.fillIn(folder, "stores.yaml", map[string]string{
		"https://s3.example.com": "https://" + s.ip + ":" + storePort,
		"us-east-1":              s3server.Region,
		"  expiry: 24h\n":        "  expiry: 24h\n  caFile: /etc/berth/artifact-store/ca.pem\n",
	})
	s.fillIn(folder, "network-policy.yaml", map[string]string{"192.0.2.0/24": s.ip + "/32", "port: 443}": "port: " + storePort + "}"})

	installed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: gateway.Name}, Spec: gateway.Spec}
	installed.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	content, err := yaml.Marshal(installed)
	Expect(err).NotTo(HaveOccurred())
	for name, content := range map[string]string{
		"gateway.yaml":       string(content),
		"kustomization.yaml": "resources: [gateway.yaml]\ncomponents: [artifact-store]\n",
	} {
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
	}
	return folder
}

// fillIn replaces what must be in a file of the component.
func (s *s3Pod) fillIn(folder, name string, values map[string]string) {
	GinkgoHelper()
	path := filepath.Join(folder, "artifact-store", name)
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	text := string(content)
	for old, value := range values {
		Expect(text).To(ContainSubstring(old), name)
		text = strings.ReplaceAll(text, old, value)
	}
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
}

func restoreGateway(ctx context.Context, spec appsv1.DeploymentSpec) {
	GinkgoHelper()
	gateway := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "berth-gateway"}, gateway)).To(Succeed())
	before := gateway.DeepCopy()
	gateway.Spec = spec
	Expect(admin.Patch(ctx, gateway, client.MergeFrom(before))).To(Succeed())
	waitRollout(ctx, gateway.Name)
}
