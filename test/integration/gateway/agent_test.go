package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// fakeAgent answers every command with success, at an address of its own.
type fakeAgent struct {
	ip   string
	port int
	runs atomic.Int64
}

var addresses atomic.Int64

// startAgent listens on port, or on any free one for 0.
func startAgent(port int) *fakeAgent {
	GinkgoHelper()
	a := &fakeAgent{ip: fmt.Sprintf("127.2.0.%d", addresses.Add(1))}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", a.ip, port))
	Expect(err).NotTo(HaveOccurred())
	a.port = l.Addr().(*net.TCPAddr).Port
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/exec", func(w http.ResponseWriter, _ *http.Request) {
		a.runs.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"stdout":"done","stderr":"","exit_code":0}`)
	})
	server := httptest.NewUnstartedServer(mux)
	Expect(server.Listener.Close()).To(Succeed())
	server.Listener = l
	server.Start()
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return a
}

func (a *fakeAgent) options() agent.Options { return agent.Options{Port: a.port, AllowLoopback: true} }

// makeReady plays the controller: the Sandbox has a pod on a.
func makeReady(ctx context.Context, s *v1alpha1.Sandbox, a *fakeAgent) {
	GinkgoHelper()
	s.Status.ObservedGeneration = &s.Generation
	s.Status.PodName, s.Status.PodUID, s.Status.PodIP, s.Status.KeyID = "pod", "pod-of-"+string(s.UID), a.ip, "key-0001"
	s.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.Now(),
	}}
	Expect(admin.Status().Update(ctx, s)).To(Succeed())
}

func metaOf(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
