package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
)

// reportOnFailure puts what a namespace holds and what Berth logged into the
// report of a spec that fails.
func reportOnFailure(namespace string) {
	started := metav1.Now()
	DeferCleanup(func(ctx context.Context) {
		if !CurrentSpecReport().Failed() {
			return
		}
		for _, dump := range []struct {
			name  string
			write func(context.Context, io.Writer) error
		}{
			{"logs of Berth", func(ctx context.Context, w io.Writer) error { return dumpLogs(ctx, w, started) }},
			{"events", func(ctx context.Context, w io.Writer) error { return dumpEvents(ctx, w, namespace) }},
			{"sandboxes, templates and pods", func(ctx context.Context, w io.Writer) error { return dumpObjects(ctx, w, namespace) }},
		} {
			var out bytes.Buffer
			if err := dump.write(ctx, &out); err != nil {
				fmt.Fprintln(&out, "could not be read:", err)
			}
			AddReportEntry(dump.name, out.String(), ReportEntryVisibilityFailureOrVerbose)
		}
	}, NodeTimeout(cleanUpTimeout))
}

func dumpObjects(ctx context.Context, w io.Writer, namespace string) error {
	for _, list := range []client.ObjectList{&v1alpha1.SandboxList{}, &v1alpha1.SandboxTemplateList{}, &corev1.PodList{}} {
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(object runtime.Object) error { return dumpObject(w, object.(client.Object)) }); err != nil {
			return err
		}
	}
	return nil
}

func dumpObject(w io.Writer, object client.Object) error {
	object.SetManagedFields(nil)
	encoded, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "--- %T\n%s\n", object, encoded)
	return err
}

func dumpEvents(ctx context.Context, w io.Writer, namespace string) error {
	events := &corev1.EventList{}
	if err := admin.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, e := range events.Items {
		fmt.Fprintf(w, "%s %s/%s %s: %s\n", eventTime(e), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return nil
}

func eventTime(e corev1.Event) string {
	if e.EventTime.IsZero() {
		return e.LastTimestamp.Format(time.TimeOnly)
	}
	return e.EventTime.Format(time.TimeOnly)
}

// dumpLogs writes what controller and gateway logged since the spec began.
func dumpLogs(ctx context.Context, w io.Writer, since metav1.Time) error {
	clientset, err := kubernetes.NewForConfig(admin.Config)
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := admin.List(ctx, pods, client.InNamespace(cluster.SystemNamespace)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		log, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{SinceTime: &since}).DoRaw(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "--- %s\n%s\n", pod.Name, log)
	}
	return nil
}
