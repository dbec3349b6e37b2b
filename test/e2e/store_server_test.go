package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/s3server"
)

const (
	storeBucket = "berth-artifacts"
	// storePort is none that the gateway may reach without the component.
	storePort       = "7070"
	storePortNumber = 7070
	// What may be seen nowhere.
	storeAccessKey = "AKIAOFTHESTORE"
	storeSecretKey = "secret-of-the-store"
	// storeContainer is the pod's, and storeFolder where its files are.
	storeContainer = "s3"
	storeFolder    = "/s3"
)

// runStore takes the server's program from the first connection, and keeps it
// running while there is a file named up. nc never sees its input end: a forwarded
// connection is closed a second after one of its sides has.
const runStore = `cd ` + storeFolder + `
mkdir data iam
mkfifo open
nc -l -p ` + storePort + ` 9<> open <&9 > versitygw
chmod +x versitygw
while :; do
  if [ -e up ]; then
    ./versitygw --port :` + storePort + ` --region ` + s3server.Region + ` --iam-dir "$PWD/iam" --keep-alive \
      --cert "$PWD/server.pem" --key "$PWD/server.key" posix "$PWD/data" >> log 2>&1 &
    echo $! > pid
    wait
  fi
  sleep 0.1
done`

// These wait until something listens at the port, nothing does, or the program has
// come.
const (
	listens      = `listens() { cat /proc/net/tcp /proc/net/tcp6 | grep -q ':1B9E [0-9A-F:]* 0A '; }; cd ` + storeFolder + `; for _ in {1..600}; do `
	orElse       = ` && exit; sleep 0.1; done; { cat log; ls -l; ps; } >&2; exit 1`
	awaitUp      = listens + `listens` + orElse
	awaitDown    = listens + `! listens` + orElse
	awaitProgram = listens + `[ -x versitygw ] && wc -c < versitygw` + orElse
)

// s3Pod is a real S3 server in a pod, which so can be reached from a cluster that
// is elsewhere.
type s3Pod struct {
	key client.ObjectKey
	ip  string
	// dir has ca.pem.
	dir string
}

// newS3Pod starts one in the tenant's namespace, with an empty bucket.
func newS3Pod(ctx context.Context, t *tenant) *s3Pod {
	GinkgoHelper()
	path, err := s3server.Program(ctx)
	Expect(err).NotTo(HaveOccurred())
	program, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer program.Close()
	about, err := program.Stat()
	Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "s3"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: storeContainer, Image: image("sandbox-small"), SecurityContext: restricted(),
				Command: []string{"bash", "-c", runStore},
				Env: []corev1.EnvVar{
					{Name: "ROOT_ACCESS_KEY", Value: storeAccessKey}, {Name: "ROOT_SECRET_KEY", Value: storeSecretKey},
					{Name: "HOME", Value: storeFolder},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: storeFolder}},
			}},
			Volumes: []corev1.Volume{{Name: "files"}}, // an emptyDir
		},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	Expect(admin.WaitForPodReady(ctx, pod)).To(Succeed())
	s := &s3Pod{key: client.ObjectKeyFromObject(pod), ip: pod.Status.PodIP, dir: GinkgoT().TempDir()}
	Expect(s3server.WriteCertificates(s.dir, net.IPv4(127, 0, 0, 1), net.ParseIP(s.ip))).To(Succeed())
	for _, file := range []string{"server.pem", "server.key"} {
		content, err := os.ReadFile(filepath.Join(s.dir, file))
		Expect(err).NotTo(HaveOccurred())
		s.exec(ctx, "cat > "+storeFolder+"/"+file+" <<'END'\n"+string(content)+"END\n")
	}
	s.exec(ctx, awaitUp)
	s.send(ctx, program, about.Size())
	s.start(ctx)
	Expect(s.client(ctx).MakeBucket(ctx, storeBucket, minio.MakeBucketOptions{Region: s3server.Region})).To(Succeed())
	return s
}

// send gives the pod its program.
func (s *s3Pod) send(ctx context.Context, program io.Reader, size int64) {
	GinkgoHelper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", forward(ctx, s.key, storePortNumber))
	Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(conn, program)
	Expect(errors.Join(err, conn.(*net.TCPConn).CloseWrite())).To(Succeed())
	_, err = io.Copy(io.Discard, conn) // the pod closes when it has all
	Expect(errors.Join(err, conn.Close())).To(Succeed())
	Expect(s.exec(ctx, awaitProgram)).To(Equal(strconv.FormatInt(size, 10) + "\n"))
}

func (s *s3Pod) start(ctx context.Context) {
	GinkgoHelper()
	s.exec(ctx, "touch "+storeFolder+"/up")
	s.exec(ctx, awaitUp)
}

func (s *s3Pod) stop(ctx context.Context) {
	GinkgoHelper()
	s.exec(ctx, "cd "+storeFolder+`; rm up; kill -9 "$(cat pid)"`)
	s.exec(ctx, awaitDown)
}

func (s *s3Pod) exec(ctx context.Context, command string) (output string) {
	GinkgoHelper()
	output, err := admin.Exec(ctx, s.key, storeContainer, "bash", "-c", command)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// client may do everything.
func (s *s3Pod) client(ctx context.Context) *minio.Core {
	GinkgoHelper()
	address := forward(ctx, s.key, storePortNumber)
	c, err := s3server.Connect(address, filepath.Join(s.dir, "ca.pem"), storeAccessKey, storeSecretKey)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// keys are those of all objects.
func (s *s3Pod) keys(ctx context.Context) (keys []string) {
	GinkgoHelper()
	for object := range s.client(ctx).ListObjectsIter(ctx, storeBucket, minio.ListObjectsOptions{Recursive: true}) {
		Expect(object.Err).NotTo(HaveOccurred())
		keys = append(keys, object.Key)
	}
	return keys
}

// unmentioned fails the spec if a text has what only the gateway may know.
func (s *s3Pod) unmentioned(where, text string) {
	GinkgoHelper()
	for _, secret := range []string{storeAccessKey, storeSecretKey, s.ip + ":" + storePort, storeBucket} {
		Expect(strings.Contains(text, secret)).To(BeFalse(), "%q is in %s: %s", secret, where, text)
	}
}
