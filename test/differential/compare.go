package differential

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
)

// Difference says what the two sides differ in, or nothing.
func Difference(s Script, want, got Outcome) string {
	last := len(want.Parts) - 1
	for i := range want.Parts {
		w, g := want.Parts[i], got.Parts[i]
		what := fmt.Sprint("part ", i)
		if i == last {
			what = "the state at the end"
			w.Stdout, g.Stdout = lasting(s, w.Stdout), lasting(s, own.ReplaceAllString(g.Stdout, ""))
		}
		if diff := cmp.Diff(w, g); diff != "" {
			return fmt.Sprintf("%s (-plain bash +session):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff(want.Files, got.Files); diff != "" {
		return fmt.Sprintf("files (-plain bash +session):\n%s", diff)
	}
	return ""
}

// lasting takes from a dump of the state of s what is volatile.
func lasting(s Script, dump string) string {
	if s.Sh {
		return volatileSh.ReplaceAllString(dump, "")
	}
	return volatile.ReplaceAllString(dump, "")
}
