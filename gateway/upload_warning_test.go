package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
	"github.com/berth-dev/berth/test/localagent"
)

// failedUploads are an agent's log lines of uploads that failed.
func failedUploads(log string) (lines []map[string]any) {
	for line := range strings.Lines(log) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == "Upload failed" {
			lines = append(lines, entry)
		}
	}
	return lines
}

// R28: each kind of failure is one warning, which says what came of which file and
// what its caller was answered; what succeeds is none.
func TestEachFailedUploadIsOneWarning(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount")
	}
	workspace := t.TempDir()
	const limit = 3 << 20
	l, _, a := newRealAgent(t, localagent.Options{
		Workspace: workspace, Limits: agent.Limits{UploadBytes: limit}, Within: []string{"mount -t tmpfs -o size=2m none " + workspace},
	})
	run := func(command string) {
		t.Helper()
		if _, err := a.Output(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	lines := 0
	for _, tc := range []struct {
		name   string
		size   int64
		before string
		status int
		logged string // the name
		came   bool   // some of it
	}{
		{"good", 10, "true", http.StatusCreated, "", false},
		{"con", 10, "true", http.StatusBadRequest, "", false},
		{"a\u202eb\n", limit + 1, "true", http.StatusRequestEntityTooLarge, "a_b", false},
		{"full", limit, "true", http.StatusInsufficientStorage, "full", true},
		{"taken", 10, ": >uploads/taken && for n in $(seq 2 1000); do : >uploads/taken_$n; done", http.StatusConflict, "taken", true},
		{"linked", 10, "mv uploads moved && ln -s moved uploads", http.StatusForbidden, "linked", false},
		{"no directory", 10, "rm uploads && : >uploads", http.StatusForbidden, "no_directory", false},
	} {
		run(tc.before)
		status, _, answer := l.upload("alice", "s", tc.name, make([]byte, tc.size))
		if status != tc.status {
			t.Errorf("%q: %d %s, want %d", tc.name, status, answer, tc.status)
		}
		if status != http.StatusCreated {
			lines++
		}
		failed := failedUploads(a.Log.String())
		if len(failed) != lines {
			t.Fatalf("%q: %d lines, want %d", tc.name, len(failed), lines)
		}
		if lines == 0 {
			continue
		}
		f := failed[lines-1]
		if f["level"] != "WARN" || f["session"] != "sandbox-1" || f["name"] != tc.logged || f["status"] != float64(tc.status) ||
			f["bytes"].(float64) > 0 != tc.came || f["duration"] == "" || strings.Contains(fmt.Sprint(f), workspace) {
			t.Errorf("%q: the line is %v", tc.name, f)
		}
	}
}
