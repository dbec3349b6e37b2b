package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/hack/cluster/node"
	"github.com/berth-dev/berth/hack/cluster/process"
)

// api asks the API server a few questions as the administrator. Kubernetes' own
// client would be most of this program.
type api struct{ client *http.Client }

// api connects from the network namespace of the first node.
func (c Cluster) api(first process.Identity) (api, error) {
	pki := filepath.Join(c.State(), "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return api{}, err
	}
	authority, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return api{}, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return api{}, errors.New("the cluster's ca.crt holds no certificate: `cluster down` removes it")
	}
	return api{&http.Client{Transport: &http.Transport{
		DialContext:     process.DialIn(node.Netns(first)),
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
	}}}, nil
}

// open sends a GET; the caller closes the body.
func (a api) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, node.APIServer()+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("GET %s: status %s", path, response.Status)
	}
	return response, nil
}

// object is what is read of a Kubernetes object.
type object struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// ready returns nil if the object has the condition Ready, else why it hasn't.
func (o object) ready() error {
	for _, c := range o.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		if c.Status == "True" {
			return nil
		}
		return fmt.Errorf("%s is not ready: %s", o.Metadata.Name, c.Message)
	}
	return fmt.Errorf("%s has no condition Ready yet", o.Metadata.Name)
}

// await watches one object until done returns nil for it. The watch begins with
// the object as it is, if it's there.
func (a api) await(ctx context.Context, collection, name string, done func(object) error) error {
	return process.Poll(ctx, collection+"/"+name, func() error {
		response, err := a.open(ctx, collection+"?watch=true&fieldSelector=metadata.name%3D"+name)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		last := fmt.Errorf("%s is not there yet", name)
		for events := json.NewDecoder(response.Body); ; {
			var event struct{ Object object }
			if err := events.Decode(&event); err != nil {
				return last // the watch ended, or the time is up
			}
			if last = done(event.Object); last == nil {
				return nil
			}
		}
	})
}
