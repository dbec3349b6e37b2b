package tasks

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/gateway/audit"
)

func TestEachSubscriptionLeavesOneAuditLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Listener)
		until  time.Duration
		want   string
	}{
		"to its end":         {func(*Listener) {}, time.Hour, audit.CodeOK},
		"client gone":        {func(*Listener) {}, time.Second, audit.CodeCancelled},
		"without a place":    {func(l *Listener) { l.Enter = func(context.Context) (func(), bool) { return nil, false } }, time.Hour, audit.CodeFailed},
		"agent out of reach": {func(l *Listener) { l.Source = fake{began: time.Now(), err: errors.New("away")} }, time.Hour, audit.CodeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newListener(fake{began: time.Now()})
				test.change(&l)
				var calls []audit.Call
				l.Ended = func(_ context.Context, call *audit.Call) { calls = append(calls, *call) }
				listening(t, l, []string{"1m"}, func(r *http.Request) {
					ctx, cancel := context.WithTimeout(r.Context(), test.until)
					t.Cleanup(cancel)
					*r = *r.WithContext(ctx)
				})
				if len(calls) != 1 || calls[0].Code != test.want || calls[0].Operation != MethodListen {
					t.Errorf("told %+v, want one of code %s", calls, test.want)
				}
			})
		})
	}
}
