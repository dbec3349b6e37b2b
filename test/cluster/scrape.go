package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MetricsPort is the port of a component's pod that has its metrics.
const MetricsPort = 9090

// Scrape gives the metrics of one of Berth's pods by name, those without labels.
func (c *Cluster) Scrape(ctx context.Context, pod client.ObjectKey) (map[string]float64, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the forwarding
	defer cancel()
	address, err := c.Forward(ctx, pod, MetricsPort)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics of pod %s: %w", pod, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("metrics of pod %s: %w", pod, err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil { // else a comment
			values[name] = number
		}
	}
	return values, nil
}
