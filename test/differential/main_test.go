package differential

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/test/localagent"
)

func TestMain(m *testing.M) { os.Exit(localagent.Main(m)) }
