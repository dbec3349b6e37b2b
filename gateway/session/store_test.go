package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
)

var key = Key{Namespace: "n", Name: "s"}

// sandbox is one that runs on a pod of that UID.
func sandbox(uid, podUID string) *berthv1alpha1.Sandbox {
	return &berthv1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: types.UID(uid)},
		Status: berthv1alpha1.SandboxStatus{
			PodUID: podUID, PodIP: "10.0.0.1",
			Conditions: []metav1.Condition{{Type: berthv1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		},
	}
}

func put(t *testing.T, s *Store, sb *berthv1alpha1.Sandbox) *Record {
	t.Helper()
	if err := s.Update(sb); err != nil {
		t.Fatal(err)
	}
	r, ok := s.Get(key)
	if !ok {
		t.Fatal("not in the store")
	}
	return r
}

// R15: an address is dropped only if it is still the one that failed.
func TestSuspectDropsOnlyWhatFailed(t *testing.T) {
	t.Parallel()
	s := NewStore()
	failed := put(t, s, sandbox("u", "pod-1"))
	s.Suspect(failed)
	if r, _ := s.Get(key); !r.suspect || failed.suspect {
		t.Error("the address in use is not suspect, or a shared record was changed")
	}
	s.trust(failed)
	if r, _ := s.Get(key); r.suspect {
		t.Error("still suspect after the API server confirmed it")
	}
	put(t, s, sandbox("u", "pod-2"))
	s.Suspect(failed)
	if r, _ := s.Get(key); r.suspect {
		t.Error("the next pod's address became suspect for the first one's failure")
	}
	put(t, s, sandbox("v", "pod-1"))
	s.Suspect(failed)
	if r, _ := s.Get(key); r.suspect {
		t.Error("another Sandbox of the name became suspect")
	}
	if err := s.Delete(sandbox("v", "pod-1")); err != nil {
		t.Fatal(err)
	}
	s.Suspect(failed) // of nothing
}

// R17: a session that this gateway deleted is gone at once, whatever the watch
// still tells of it; its successor is not.
func TestEndedSessionIsHiddenUntilItIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStore()
		put(t, s, sandbox("u", "pod-1"))
		done := make(chan struct{})
		go func() {
			s.end(t.Context(), key, "u", time.Hour)
			close(done)
		}()
		synctest.Wait()
		for _, late := range []string{"pod-1", "pod-2"} {
			if err := s.Update(sandbox("u", late)); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Get(key); ok {
				t.Error("it is still there")
			}
		}
		if err := s.Delete(cache.DeletedFinalStateUnknown{Key: "n/s", Obj: sandbox("u", "pod-2")}); err != nil {
			t.Fatal(err)
		}
		<-done
		if r := put(t, s, sandbox("v", "pod-3")); r.PodUID != "pod-3" {
			t.Errorf("its successor is %+v", r)
		}
		if len(s.ended) != 0 || len(s.watchers) != 0 {
			t.Errorf("%d ends and %d watchers are left", len(s.ended), len(s.watchers))
		}
	})
}

// The wait for the watch has an end; the session stays hidden until it is told of.
func TestEndDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStore()
		put(t, s, sandbox("u", "pod-1"))
		start := time.Now()
		s.end(t.Context(), key, "u", endWait)
		if took := time.Since(start); took != endWait {
			t.Errorf("waited %s, want %s", took, endWait)
		}
		if _, ok := s.Get(key); ok {
			t.Error("it is back")
		}
		if err := s.Replace([]any{sandbox("v", "pod-2")}, ""); err != nil {
			t.Fatal(err)
		}
		if r, ok := s.Get(key); !ok || r.UID != "v" {
			t.Error("its successor is hidden")
		}
	})
}

// Every change of a key wakes those who watch it, a list too; other keys don't.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := NewStore()
	calls := 0
	stop := s.Watch(key, func() {
		calls++
		s.Get(key) // a watcher may read
	})
	s.Watch(Key{"n", "other"}, func() { t.Error("the other key changed") })()
	put(t, s, sandbox("u", "pod-1"))
	if err := s.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(sandbox("u", "pod-1")); err != nil {
		t.Fatal(err)
	}
	stop()
	put(t, s, sandbox("u", "pod-1"))
	if calls != 3 {
		t.Errorf("called %d times, want 3", calls)
	}
	select {
	case <-s.Synced():
	default:
		t.Error("a list did not make it synced")
	}
}

// A reflector drops what a Record doesn't read before it holds a list of it.
func TestTransformerKeepsWhatRecordsRead(t *testing.T) {
	t.Parallel()
	sb := sandbox("u", "pod-1")
	sb.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	sb.Annotations = map[string]string{"a": "b"}
	before := *NewRecord(sb)
	out, err := NewStore().Transformer()(sb)
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*berthv1alpha1.Sandbox)
	if after := *NewRecord(got); after.Key != before.Key || after.UID != before.UID || after.PodUID != before.PodUID || after.Ready != before.Ready {
		t.Errorf("record %+v, want %+v", after, before)
	}
	if got.ManagedFields != nil || got.Annotations != nil {
		t.Error("managed fields or annotations are kept")
	}
}

// Those who ask for a session while it is being made share the answer until the
// watch has told of it.
func TestCreatesAreSharedUntilTheyLand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f, made := NewStore(), newFlights(), 0
		create := func(context.Context) (*Record, error) {
			made++
			<-time.After(time.Second)
			return NewRecord(sandbox("u", "")), nil
		}
		ask := func() {
			if r, err := f.do(t.Context(), flightKey{key, "alice", "default"}, s, create); err != nil || r.UID != "u" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		go ask()
		synctest.Wait()
		ask() // while it is made
		ask() // before the watch tells
		put(t, s, sandbox("u", ""))
		synctest.Wait()
		if made != 1 || len(f.m) != 0 {
			t.Errorf("made %d times, %d under way; want once and none", made, len(f.m))
		}
		ask() // afterwards
		synctest.Wait()
		if made != 2 {
			t.Errorf("made %d times, want 2", made)
		}
	})
}
