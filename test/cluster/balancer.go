package cluster

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Balancer is a plain load balancer in front of a Service's ready pods: each
// request goes to the next one, whoever sends it. It follows EndpointSlices, keeps
// one pool of connections, and tries another pod only if it can't connect to one, so
// when nothing was sent. Unlike the rest of this package it needs the pods' network.
type Balancer struct {
	// Address is where it listens, host:port.
	Address string

	mu        sync.Mutex
	endpoints []string // host:port
	next      int
	inFlight  map[string]int // by endpoint; of a broken call until its caller is told
	failed    []Broken
	changed   chan struct{} // closed and made anew with each change
}

// Balance starts a balancer, which ends with the context.
func (c *Cluster) Balance(ctx context.Context, service client.ObjectKey, port int) (*Balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Balancer{Address: listener.Addr().String(), inFlight: map[string]int{}, changed: make(chan struct{})}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", service.Name // the endpoint is chosen below
			r.Out.Host = r.In.Host
		},
		Transport:     balanced{b, transport},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // Failed tells
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else an answer that begins while the last of the request's body is passed on
		// closes that body, and the call breaks.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }() // which ends as it is told to
	context.AfterFunc(ctx, func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	go b.follow(ctx, c, service, port)
	if err := b.Await(ctx, func(endpoints []string, _ map[string]int) bool { return len(endpoints) > 0 }); err != nil {
		return nil, fmt.Errorf("no endpoint of service %s: %w", service, err)
	}
	return b, nil
}

// follow keeps the endpoints as EndpointSlices tell.
func (b *Balancer) follow(ctx context.Context, c *Cluster, service client.ObjectKey, port int) {
	slicesOf := []client.ListOption{client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}}
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, &discoveryv1.EndpointSliceList{}, slicesOf...)
		if err != nil {
			select {
			case <-time.After(retryInterval):
			case <-ctx.Done():
			}
			continue
		}
		for range w.ResultChan() {
			list := &discoveryv1.EndpointSliceList{}
			if err := c.List(ctx, list, slicesOf...); err == nil {
				b.set(readyEndpoints(list, port))
			}
		}
	}
}

// retryInterval is between two tries to watch, while the API server doesn't answer.
const retryInterval = 100 * time.Millisecond

func readyEndpoints(list *discoveryv1.EndpointSliceList, port int) []string {
	var ready []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready = append(ready, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(port)))
			}
		}
	}
	slices.Sort(ready)
	return ready
}

// Await waits until done says so of the endpoints, and of how many calls each has.
func (b *Balancer) Await(ctx context.Context, done func(endpoints []string, inFlight map[string]int) bool) error {
	for {
		b.mu.Lock()
		ok, changed := done(b.endpoints, b.inFlight), b.changed
		b.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Broken is a call that an endpoint didn't answer to its end.
type Broken struct {
	Endpoint string
	Err      error
}

// Failed gives the calls that broke, but for those whose callers had gone.
func (b *Balancer) Failed() []Broken {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.failed)
}

func (b *Balancer) set(endpoints []string) {
	b.change(func() { b.endpoints = endpoints })
}

func (b *Balancer) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// choose gives the next endpoint, and counts a call to it.
func (b *Balancer) choose() (endpoint string, ok bool) {
	b.change(func() {
		if len(b.endpoints) == 0 {
			return
		}
		b.next++
		endpoint, ok = b.endpoints[b.next%len(b.endpoints)], true
		b.inFlight[endpoint]++
	})
	return endpoint, ok
}

func (b *Balancer) done(endpoint string, err error) {
	b.change(func() {
		b.inFlight[endpoint]--
		if err != nil {
			b.failed = append(b.failed, Broken{endpoint, err})
		}
	})
}
