package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/httpapi"
	"github.com/berth-dev/berth/sandbox-agent/token"
	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// split separates the agent's own variables from those that shells get.
func split(environ []string) (own map[string]string, rest []string) {
	own = map[string]string{}
	for _, kv := range environ {
		if !strings.HasPrefix(kv, wire.EnvPrefix) {
			rest = append(rest, kv)
			continue
		}
		name, value, _ := strings.Cut(kv, "=")
		own[name] = value
	}
	return own, rest
}

// signed returns the gate for tokens to the pod that own describes.
func signed(own map[string]string) (httpapi.Gate, error) {
	for _, name := range []string{wire.EnvNamespace, wire.EnvPodUID, wire.EnvPublicKeys} {
		if own[name] == "" {
			return nil, fmt.Errorf("%s is not set: the controller sets it in a pod; by hand use --insecure-no-auth", name)
		}
	}
	keys, err := token.ParseKeys([]byte(own[wire.EnvPublicKeys]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wire.EnvPublicKeys, err)
	}
	audience := token.Audience(own[wire.EnvNamespace], own[wire.EnvPodUID])
	return httpapi.Signed{Verifier: token.NewVerifier(audience, keys, time.Now)}, nil
}
