package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestImpossibleProcessesAreRefused: a lying agent's answers go no further.
func TestImpossibleProcessesAreRefused(t *testing.T) {
	t.Parallel()
	const good = `"id":"a","kind":"process","started":"2026-01-01T00:00:00Z"`
	for name, body := range map[string]string{
		"no id":         `{"kind":"process"}`,
		"other id":      `{"id":"b","kind":"process"}`,
		"kind":          `{"id":"a","kind":"daemon"}`,
		"long command":  `{` + good + `,"command":"` + strings.Repeat("x", 1025) + `"}`,
		"offsets":       `{` + good + `,"output_start":2,"output_end":1}`,
		"negative":      `{` + good + `,"output_start":-1}`,
		"too much kept": `{` + good + `,"output_end":4194305}`,
		"exit code":     `{` + good + `,"exit_code":256}`,
		"still runs":    `{` + good + `,"running":true,"exit_code":0}`,
		"has ended":     `{` + good + `,"running":true,"ended":"2026-01-01T00:00:00Z"}`,
		"is cancelled":  `{` + good + `,"running":true,"cancelled":true}`,
		"long notice":   `{` + good + `,"notice":"` + strings.Repeat("x", 1025) + `"}`,
		"no JSON":       `here`,
		"too long":      `{` + good + `,"x":"` + strings.Repeat("x", maxSmallAnswer) + `"}`,
	} {
		c, pod := lying(t, Options{}, answer(http.StatusOK, body))
		if _, err := c.Process(t.Context(), pod, "a"); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := c.StartProcess(t.Context(), pod, ProcessRequest{ID: "a", Command: "x"}); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: start: got %v", name, err)
		}
		if name == "other id" {
			continue
		}
		c, pod = lying(t, Options{}, answer(http.StatusOK, `{"processes":[`+body+`]}`))
		if _, err := c.Processes(t.Context(), pod); !errors.Is(err, ErrBadAnswer) && name != "too long" {
			t.Errorf("%s: list: got %v", name, err)
		}
	}
	many := strings.Repeat(`{`+good+`},`, MaxProcesses) + `{` + good + `}`
	c, pod := lying(t, Options{}, answer(http.StatusOK, `{"processes":[`+many+`]}`))
	if _, err := c.Processes(t.Context(), pod); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("too many: got %v", err)
	}
	c, pod = lying(t, Options{}, answer(http.StatusOK, `{"processes":null}`))
	if _, err := c.Processes(t.Context(), pod); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("no list: got %v", err)
	}
	c, pod = lying(t, Options{}, answer(http.StatusOK, `{`+good+`,"output_end":4194304,"exit_code":255}`))
	if p, err := c.Process(t.Context(), pod, "a"); err != nil || *p.ExitCode != 255 {
		t.Errorf("a good one: got %+v, %v", p, err)
	}
}

// TestEndlessProcessListIsNotRead: an answer of 1 MiB may not become 50 here.
func TestEndlessProcessListIsNotRead(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{MaxProcesses - 1: true, MaxProcesses: true, MaxProcesses + 1: false, 300_000: false} {
		var l fewProcesses
		err := json.Unmarshal([]byte("["+strings.Repeat("{},", n-1)+"{}]"), &l)
		if (err == nil) != want || len(l) != min(n, MaxProcesses) {
			t.Errorf("%d processes: %d were read, %v", n, len(l), err)
		}
	}
}

// A list of long commands is read when there is room, as a large result is.
func TestRoomIsMadeForLargeLists(t *testing.T) {
	t.Parallel()
	full := errors.New("no room")
	options := Options{Admit: func(context.Context, int64) error { return full }}
	for size, want := range map[int]error{0: nil, AdmitAbove: full} {
		c, pod := lying(t, options, answer(http.StatusOK, `{"x":"`+strings.Repeat("x", size)+`","processes":[]}`))
		if _, err := c.Processes(t.Context(), pod); !errors.Is(err, want) {
			t.Errorf("a list of %d bytes: got %v, want %v", size, err, want)
		}
	}
}

func TestImpossibleOutputIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q    OutputQuery
		body string
	}{
		"before what was asked": {OutputQuery{Offset: 5}, `{"output":"a","offset":4,"next_offset":5}`},
		"negative":              {OutputQuery{Offset: -5}, `{"offset":-5,"next_offset":-5}`},
		"backwards":             {OutputQuery{}, `{"output":"a","offset":1,"next_offset":0}`},
		"no way forward":        {OutputQuery{}, `{"output":"a","offset":1,"next_offset":1}`},
		"nothing for much":      {OutputQuery{}, `{"offset":1,"next_offset":2}`},
		"more than asked":       {OutputQuery{Limit: 1}, `{"output":"aaaaa","offset":0,"next_offset":5}`},
		"longer than its bytes": {OutputQuery{}, `{"output":"aaaa","offset":0,"next_offset":1}`},
		"exit code":             {OutputQuery{}, `{"exit_code":-1}`},
	} {
		client, pod := lying(t, Options{}, answer(http.StatusOK, c.body))
		if _, err := client.ProcessOutput(t.Context(), pod, "a", c.q); !errors.Is(err, ErrBadAnswer) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	client, pod := lying(t, Options{}, answer(http.StatusOK, `{"written":3}`))
	if _, err := client.ProcessInput(t.Context(), pod, "a", ProcessInput{Data: "xy"}); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("more written than sent: got %v", err)
	}
}

// TestOutputQueryIsSent: its form is the wire's, and the token is for the path
// without it.
func TestOutputQueryIsSent(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	c, pod := lying(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.RequestURI()
		answer(http.StatusOK, `{"offset":7,"next_offset":7}`)(w, r)
	})
	for want, q := range map[string]OutputQuery{
		"/v1/processes/a/output":                              {},
		"/v1/processes/a/output?limit=9&offset=-3&wait=1.500": {Offset: -3, Limit: 9, Wait: 1500 * time.Millisecond},
		"/v1/processes/a/output?offset=4&wait=60.000":         {Offset: 4, Wait: time.Hour},
	} {
		if _, err := c.ProcessOutput(t.Context(), pod, "a", q); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		if got := <-seen; got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func TestMalformedProcessIDsAreNotSent(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	for _, id := range []string{"", "..", "a/b", "a?x", strings.Repeat("a", 129)} {
		_, err1 := c.Process(t.Context(), pod, id)
		_, err2 := c.ProcessOutput(t.Context(), pod, id, OutputQuery{})
		_, err3 := c.ProcessInput(t.Context(), pod, id, ProcessInput{})
		for _, err := range []error{err1, err2, err3, c.SignalProcess(t.Context(), pod, id, "TERM")} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%q: got %v", id, err)
			}
		}
	}
}

// TestLongPollHasItsOwnDeadline: longer than other requests', and not for ever.
func TestLongPollHasItsOwnDeadline(t *testing.T) {
	t.Parallel()
	c, pod := lying(t, Options{Timeout: time.Nanosecond, Grace: 50 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	began := time.Now()
	_, err := c.ProcessOutput(t.Context(), pod, "a", OutputQuery{Wait: 100 * time.Millisecond})
	if waited := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || waited < 150*time.Millisecond {
		t.Errorf("got %v after %v", err, waited)
	}
}
