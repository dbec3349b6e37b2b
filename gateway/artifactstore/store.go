package artifactstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Options of all stores.
type Options struct {
	// Now is the clock by which objects expire.
	Now func() time.Time
	Log *slog.Logger
	// Observe is told of each operation (one of the Operation constants) and how it
	// ended.
	Observe func(operation string, err error)
	// Swept is told how many objects a sweep deleted.
	Swept func(objects int)
}

// Operations that Options.Observe is told of.
const (
	OperationPut   = "put"
	OperationGet   = "get"
	OperationSweep = "sweep"
)

// What a store may take.
const (
	// putTimeout bounds a file's way into the store, with all attempts.
	putTimeout = 10 * time.Minute
	// openTimeout bounds the wait for an object to be opened.
	openTimeout = 30 * time.Second
	// stallTimeout is how long nothing may move.
	stallTimeout = 30 * time.Second
	// finishTimeout bounds what is done for a file after its last byte: a store may
	// have to put thousands of parts together.
	finishTimeout = 5 * time.Minute
	// cleanTimeout bounds the removal of what a failed upload left.
	cleanTimeout = 10 * time.Second
	dialTimeout  = 10 * time.Second
)

// Sizes of S3, in bytes.
const (
	// singleBytes is the largest object that one request can put.
	singleBytes = 5 << 30
	// partBytes is the size of a larger one's parts, unless it would be too many.
	partBytes = 64 << 20
	maxParts  = 10_000
)

// attempts is how often a request is sent whose failure may not last.
const attempts = 3

// Store is one bucket, or a part of one.
type Store struct {
	name     string
	bucket   string
	root     string // begins all keys
	expiry   time.Duration
	maxBytes int64
	core     minio.Core
	secure   bool
	options  Options
	log      *slog.Logger
	limits   limits
	// sweptTo is the key after which the next sweep goes on. Sweep alone uses it.
	sweptTo string
}

// limits are constants but in tests.
type limits struct {
	put, open, stall, finish time.Duration
	single, part             int64
	sweep, failures          int
	pause                    time.Duration // before the second attempt
}

// Stores are those of the configuration, by name.
type Stores map[string]*Store

// New returns the stores of configs. Files that they name must be there; whether a
// bucket is reached shows when it is used.
func New(configs []Config, options Options) (Stores, error) {
	stores := make(Stores, len(configs))
	var errs []error
	for i := range configs {
		s, err := newStore(&configs[i], options)
		if err != nil {
			errs = append(errs, fmt.Errorf("artifact store %q: %w", configs[i].Name, err))
			continue
		}
		stores[configs[i].Name] = s
	}
	return stores, errors.Join(errs...)
}

func newStore(c *Config, options Options) (*Store, error) {
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, errors.New("endpoint: not a URL")
	}
	keys := files{c.AccessKeyFile, c.SecretKeyFile, c.SessionTokenFile}
	if _, err := keys.read(); err != nil {
		return nil, err
	}
	transport, err := newTransport(c.CAFile)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:      credentials.New(keys),
		Secure:     secure,
		Transport:  transport,
		Region:     c.Region,
		MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return &Store{
		name: c.Name, bucket: c.Bucket, root: c.Prefix + folder,
		expiry: time.Duration(c.Expiry), maxBytes: c.MaxBytes,
		core: *core, secure: secure, options: options, log: options.Log,
		limits: limits{
			put: putTimeout, open: openTimeout, stall: stallTimeout, finish: finishTimeout,
			single: singleBytes, part: partBytes, sweep: sweepMost, failures: sweepFailures, pause: time.Second / 4,
		},
	}, nil
}

// newTransport keeps few connections, and none for long.
func newTransport(caFile string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   8,
		// What is put must come back as it was.
		DisableCompression: true,
	}
	if caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caFile: %s: no certificate in PEM in it", caFile)
	}
	return t, nil
}

// Check tells why files can't be put into the store of that name, before one is
// taken out of its session for it. Its error's text is for the caller.
func (s Stores) Check(name string) error {
	if _, ok := s[name]; !ok {
		return fmt.Errorf("the session's template wants exports in the artifact store %q, which this gateway has not: whoever runs it must configure one of that name, or the template name another", name)
	}
	return nil
}

// observe tells of an operation that the store did, or failed to do: not of those
// that ended for another reason.
func (s *Store) observe(operation string, err error) {
	var failed *Error
	if err == nil || errors.As(err, &failed) {
		s.options.Observe(operation, err)
	}
}

// clean runs f, which removes what a failed upload left, even if the upload's
// caller has gone.
func clean(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	return f(ctx)
}
