package client

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Options of a Client. The zero value is right for production.
type Options struct {
	// Port of the agents; 0 is wire.Port. Tests alone set it.
	Port int
	// AllowLoopback permits loopback addresses. Tests alone set it.
	AllowLoopback bool
	// Socket, if set, names the Unix socket of the agent that has the pod UID. Then
	// every agent is reached so, and Pod.IP means nothing.
	Socket func(podUID string) string
	// DialTimeout bounds a connect; 0 is 5 s.
	DialTimeout time.Duration
	// Timeout bounds every request but Exec, ReadArtifact, Upload and those of the
	// file tools; 0 is 10 s.
	Timeout time.Duration
	// QueueWait is how long a command may wait behind others; 0 is 10 min.
	QueueWait time.Duration
	// Grace is what Exec allows beyond queue and command: the kill of a tree
	// and, once more, the transfer of a result. 0 is 15 s.
	Grace time.Duration
	// Admit, if set, waits until there is room for a result of so many bytes
	// (AdmitAbove or more). It is called before that is read, and fails the call
	// with its error.
	Admit func(ctx context.Context, size int64) error
	// Propagate, if set, adds to each request's header what it is part of: a trace.
	Propagate func(ctx context.Context, header http.Header)
	// ReadTimeout bounds ReadArtifact, its body included; 0 is 10 min.
	ReadTimeout time.Duration
	// StallTimeout is how long the agent may take nothing of an upload or a file
	// that is written, or leave one of these or another file tool unanswered; 0 is
	// 1 min.
	StallTimeout time.Duration
}

// AdmitAbove is the size of a result from which Options.Admit is asked.
const AdmitAbove = 64 << 10

// Client speaks to the agents of any number of pods. It is safe for concurrent
// use.
type Client struct {
	options Options
	signer  atomic.Pointer[Signer]
	http    *http.Client
}

// New returns a client that signs with signer.
func New(signer *Signer, options Options) *Client {
	setDefault(&options.DialTimeout, 5*time.Second)
	setDefault(&options.Timeout, 10*time.Second)
	setDefault(&options.QueueWait, 10*time.Minute)
	setDefault(&options.Grace, 15*time.Second)
	setDefault(&options.StallTimeout, time.Minute)
	if options.Port == 0 {
		options.Port = Port
	}
	c := &Client{options: options}
	c.signer.Store(signer)
	c.http = &http.Client{
		Transport: transport(options),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return c
}

// SetSigner replaces the key ring, for requests that begin from now on.
func (c *Client) SetSigner(s *Signer) { c.signer.Store(s) }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// transport keeps few connections per pod and not for long: there may be
// thousands of pods, and a connection costs some 20 KiB on either side. The
// agent keeps its side open longer, so that it is never the one to close.
func transport(o Options) *http.Transport {
	dialer := &net.Dialer{
		Timeout: o.DialTimeout,
		// A node that vanished is noticed within 30 s even while a silent
		// command runs.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if o.Socket != nil {
				network, address = "unix", o.Socket(strings.TrimSuffix(address, socketPort))
			}
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: conn}, nil
		},
		DisableCompression:     true,
		ExpectContinueTimeout:  o.Timeout,
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 16 << 10,
		ReadBufferSize:         4 << 10,
		WriteBufferSize:        4 << 10,
		ForceAttemptHTTP2:      false,
	}
}

// socketPort is what net/http adds to an authority that has no port.
const socketPort = ":80"

// host returns the authority of pod's agent, or an error for an address that
// no pod has. With sockets it is the pod's UID, so that each has its own
// connections.
func (c *Client) host(pod Pod) (string, error) {
	if c.options.Socket != nil {
		if !plainUID(pod.UID) {
			return "", addressError("pod UID is not one that a socket can have")
		}
		return pod.UID, nil
	}
	ip := pod.IP.Unmap()
	if err := checkAddress(ip, c.options.AllowLoopback); err != nil {
		return "", err
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(c.options.Port)), nil
}

// plainUID tells whether uid is the same in an authority: of letters, digits and
// hyphens.
func plainUID(uid string) bool {
	return uid != "" && strings.Trim(uid, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func checkAddress(ip netip.Addr, allowLoopback bool) error {
	switch {
	case !ip.IsValid():
		return addressError("pod has no address")
	case ip.Zone() != "", ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.IsUnspecified(),
		ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return addressError("pod address " + ip.String() + " is not one that a pod can have")
	case ip.IsLoopback() && !allowLoopback:
		return addressError("pod address " + ip.String() + " is loopback")
	}
	return nil
}

type addressError string

func (e addressError) Error() string { return string(e) }

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
