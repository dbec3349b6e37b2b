package httpapi

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// TestCommandsAreCheckedAtTheirLimits: each field at its limit and beyond.
func TestCommandsAreCheckedAtTheirLimits(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("a", n) }
	env := func(name, value string) []wire.EnvVar { return []wire.EnvVar{{Name: name, Value: value}} }
	for name, c := range map[string]struct {
		command, id, cwd string
		env              []wire.EnvVar
		refused          bool
	}{
		"least":               {command: "a"},
		"no command":          {refused: true},
		"NUL in command":      {command: "a\x00", refused: true},
		"id":                  {command: "a", id: long(128)},
		"long id":             {command: "a", id: long(129), refused: true},
		"id of dots":          {command: "a", id: "...", refused: false},
		"id of a parent":      {command: "a", id: "..", refused: true},
		"id with a slash":     {command: "a", id: "a/b", refused: true},
		"cwd":                 {command: "a", cwd: long(wire.MaxPath)},
		"long cwd":            {command: "a", cwd: long(wire.MaxPath + 1), refused: true},
		"NUL in cwd":          {command: "a", cwd: "a\x00", refused: true},
		"variable":            {command: "a", env: env(long(255), "")},
		"long name":           {command: "a", env: env(long(256), ""), refused: true},
		"digit first":         {command: "a", env: env("1a", ""), refused: true},
		"the agent's own":     {command: "a", env: env("BERTH_X", ""), refused: true},
		"NUL in the variable": {command: "a", env: env("A", "\x00"), refused: true},
	} {
		if refusal := checkCommand(c.command, c.id, c.cwd, c.env); (refusal != nil) != c.refused {
			t.Errorf("%s: got %+v", name, refusal)
		} else if refusal != nil && (refusal.Status != 400 || refusal.Code != wire.CodeBadRequest) {
			t.Errorf("%s: got %+v", name, refusal)
		}
	}
}

func TestSessionLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits  wire.Limits
		refused bool
	}{
		"defaults":             {limits: wire.Limits{}},
		"negative logs":        {limits: wire.Limits{LogBytes: -1}, refused: true},
		"negative time-out":    {limits: wire.Limits{CommandTimeoutMax: -1}, refused: true},
		"longest time-out":     {limits: wire.Limits{CommandTimeoutMax: math.MaxInt32}},
		"too long a time-out":  {limits: wire.Limits{CommandTimeoutMax: math.MaxInt32 + 1}, refused: true},
		"most output":          {limits: wire.Limits{OutputBytes: wire.MaxOutputBytes}},
		"too much output":      {limits: wire.Limits{OutputBytes: wire.MaxOutputBytes + 1}, refused: true},
		"default above most":   {limits: wire.Limits{CommandTimeoutDefault: 6, CommandTimeoutMax: 5}, refused: true},
		"default of that most": {limits: wire.Limits{CommandTimeoutDefault: 5, CommandTimeoutMax: 5}},
	} {
		if refusal := checkSession(wire.Session{UID: "a", Limits: c.limits}); (refusal != nil) != c.refused {
			t.Errorf("%s: got %+v", name, refusal)
		}
	}
}

// TestLongestTimeout: a caller's time-out is cut before it is a duration.
func TestLongestTimeout(t *testing.T) {
	t.Parallel()
	limits := wire.Limits{CommandTimeoutMax: math.MaxInt32}.WithDefaults()
	if got := command(wire.ExecRequest{Timeout: math.MaxFloat64}, limits).Timeout; got != math.MaxInt32*time.Second {
		t.Errorf("got %v", got)
	}
}
