package differential

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/test/localagent"
)

func TestMain(m *testing.M) {
	// A plain bash shows, and can't change, what this process was told to ignore
	// (nohup does). What is caught here begins with its default there.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	os.Exit(localagent.Main(m))
}
