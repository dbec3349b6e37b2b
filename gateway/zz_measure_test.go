package gateway_test

import (
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

func TestServeForMeasure(t *testing.T) {
	if os.Getenv("MEASURE") == "" {
		return
	}
	l := newLive(t)
	l.agent.artifacts[artifactID] = fakeArtifact{"f", "application/octet-stream", make([]byte, 8<<20)}
	l.agent.session = &client.Session{}
	fmt.Println("URL", l.url, os.Getpid())
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	<-c
}
