package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/v1alpha1"
	agentclient "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/shellcases"
)

const (
	// tableTimeout is for all cases of the table, each in a pod of its own.
	tableTimeout = 15 * time.Minute
	// podsAtATime of them: most of a pod's start is waiting for its probe.
	podsAtATime = 8
)

var _ = Describe("The shell of a session", func() {
	It("does what the table of commands says, each case in a pod of its own", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox")))
		cases := shellcases.Bash()
		Expect(len(cases)).To(BeNumerically(">=", 80))
		keys := agentKeys(ctx)

		numbers := make(chan int)
		var failures sync.Map
		var workers sync.WaitGroup
		for range podsAtATime {
			workers.Go(func() {
				for i := range numbers {
					if err := t.runCase(ctx, keys, fmt.Sprintf("case-%d", i), cases[i]); err != nil {
						failures.Store(cases[i].Name, err)
					}
				}
			})
		}
		for i := range cases {
			numbers <- i
		}
		close(numbers)
		workers.Wait()
		var report strings.Builder
		failures.Range(func(name, err any) bool {
			fmt.Fprintf(&report, "%v: %v\n", name, err)
			return true
		})
		Expect(report.String()).To(BeEmpty())
	}, SpecTimeout(tableTimeout))

	It("that is a plain sh does what its table says", func(ctx context.Context) {
		t := newTenant(ctx, withImage(image("sandbox-busybox")))
		keys := agentKeys(ctx)
		var all shellcases.Steps
		for _, c := range shellcases.Sh() {
			all = append(all, c.Steps...)
		}
		Expect(t.runCase(ctx, keys, "plain", shellcases.Case{Steps: all})).To(Succeed())
	}, SpecTimeout(specTimeout))
})

// runCase runs the steps of a case in a session of its own, which ends with it.
func (t *tenant) runCase(ctx context.Context, keys *agentclient.Signer, id string, c shellcases.Case) error {
	sandbox := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: id}}
	if err := admin.Create(ctx, sandbox); err != nil {
		return err
	}
	defer func() {
		// The namespace takes along what remains.
		_ = admin.Delete(ctx, sandbox)
	}()
	if err := admin.WaitForReady(ctx, sandbox); err != nil {
		return err
	}
	a, err := dialAgent(ctx, keys, sandbox)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.Bind(ctx, a.pod, agentclient.Session{UID: string(sandbox.UID)}); err != nil {
		return err
	}
	steps := append(shellcases.Steps{{Run: shellcases.Setup}}, c.Steps...)
	for i, step := range steps {
		result, err := a.Exec(ctx, a.pod, step.Request(), 0)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if differences := shellcases.Check(step, result); len(differences) > 0 {
			return fmt.Errorf("step %d: %s: %s", i, step.Run[:min(len(step.Run), 100)], strings.Join(differences, "; "))
		}
	}
	return nil
}
