//go:build conformance

package gateway_test

import "testing"

// A failure that isn't foreseen, or one that is and passes, is never a warning.
func TestOnlyWarningsAreForgiven(t *testing.T) {
	t.Parallel()
	const summary = "\n✓ a: 2 passed, 0 failed\n✗ b: 1 passed, 1 failed\n"
	for name, tc := range map[string]struct {
		rest string
		want bool
	}{
		"a warning":                  {"Unexpected failures (not in baseline):\n  ✗ a\n", true},
		"a failure":                  {"Unexpected failures (not in baseline):\n  ✗ b\n", false},
		"a failure, and a warning":   {"Unexpected failures (not in baseline):\n  ✗ a\n  ✗ b\n", false},
		"a check":                    {"Unexpected failures (not in baseline):\n  ✗ b:c\n", false},
		"a warning, and a stale one": {"Stale baseline entries\n  ✓ a\nUnexpected failures (not in baseline):\n  ✗ a\n", false},
		"another error":              {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := onlyWarnings([]byte(summary + tc.rest)); got != tc.want {
				t.Errorf("forgiven: %v, want %v", got, tc.want)
			}
		})
	}
}
