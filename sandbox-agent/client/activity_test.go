package client

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestImpossibleActivityIsRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"running": `{"running":-1}`, "queued": `{"queued":-1}`, "other": `{"other":-1}`,
		"processes": `{"processes":-1}`, "idle": `{"idle_ms":-1}`, "no JSON": `busy`,
	} {
		c, pod := lying(t, Options{}, answer(http.StatusOK, body))
		if _, err := c.Activity(t.Context(), pod); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: activity: want ErrBadAnswer, got %v", name, err)
		}
		if _, err := c.Quiesce(t.Context(), pod, time.Second); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: quiesce: want ErrBadAnswer, got %v", name, err)
		}
	}
}

func TestQuiesceAsksForNoLessThanTheIdleTime(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	c, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body)
		answer(http.StatusOK, `{"idle_ms":7,"quiesced":true}`)(w, r)
	})
	for idle, want := range map[time.Duration]string{
		time.Minute: `{"idle_ms":60000}`, time.Millisecond: `{"idle_ms":1}`, time.Millisecond + 1: `{"idle_ms":2}`, 0: `{"idle_ms":0}`,
	} {
		got, err := c.Quiesce(t.Context(), pod, idle)
		if err != nil {
			t.Fatal(err)
		}
		if body := <-bodies; body != want+"\n" {
			t.Errorf("%v: sent %s, want %s", idle, body, want)
		}
		if diff := cmp.Diff(&Activity{IdleMS: 7, Quiesced: true}, got); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
	}
}
