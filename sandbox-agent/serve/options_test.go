package serve

import (
	"strings"
	"testing"
)

func TestSessionDirExcludesWhatItDecides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"alone":             {Options{SessionDir: "/s", Workspace: defaultWorkspace}, ""},
		"relative":          {Options{SessionDir: "s", Workspace: defaultWorkspace}, "absolute"},
		"with an address":   {Options{SessionDir: "/s", Workspace: defaultWorkspace, Listen: ":8090"}, "excludes"},
		"with a socket":     {Options{SessionDir: "/s", Workspace: defaultWorkspace, Unix: "/s/agent.sock"}, "excludes"},
		"without tokens":    {Options{SessionDir: "/s", Workspace: defaultWorkspace, InsecureNoAuth: true}, "excludes"},
		"with a workspace":  {Options{SessionDir: "/s", Workspace: "/elsewhere"}, "excludes"},
		"neither, in a pod": {Options{Workspace: defaultWorkspace}, ""},
	} {
		err := tc.options.Complete()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
