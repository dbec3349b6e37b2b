package mcpserver

import "testing"

func TestLifetime(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{
		0: "0 seconds", 1: "1 second", 59: "59 seconds", 60: "1 minute", 61: "61 seconds", 300: "5 minutes",
		3599: "3599 seconds", 3600: "1 hour", 3601: "1 hour", 3629: "1 hour", 3630: "61 minutes",
		86369: "1439 minutes", 86370: "24 hours", 86399: "24 hours", 86400: "24 hours", 86401: "24 hours",
	} {
		if got := lifetime(seconds); got != want {
			t.Errorf("%d: %q, want %q", seconds, got, want)
		}
	}
}
