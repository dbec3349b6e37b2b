package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/test/localagent"
)

// A list tells what of it could not be read, and why.
func TestListOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to be one that may not read everything")
	}
	l, workspace, _ := newRealAgent(t, localagent.Options{Within: []string{`exec setpriv --bounding-set=-dac_override,-dac_read_search "$0" "$@"`}})
	if err := errors.Join(os.MkdirAll(filepath.Join(workspace, "d"), 0), os.Mkdir(filepath.Join(workspace, "e"), 0o755), os.WriteFile(filepath.Join(workspace, "e/f"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	forEachEra(t, func(t *testing.T, era string) {
		list := structured(t, call(t, l.client(era), "list_files", object{"depth": 2}))
		if want := `What is in "d" is missing: it could not be read (permission denied).`; list["notice"] != want {
			t.Errorf("notice %v, want %s", list["notice"], want)
		}
		var paths []string
		for _, e := range list["entries"].([]any) {
			paths = append(paths, e.(object)["path"].(string))
		}
		if diff := cmp.Diff([]string{"d", "e", "e/f"}, paths); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	})
}
