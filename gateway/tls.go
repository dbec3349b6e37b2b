package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

func (o *Options) bindTLSFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.TLSCert, "tls-cert", "", "file with the certificate (PEM, its chain after it) of --listen, read again when it changes; plain HTTP if not given")
	fs.StringVar(&o.TLSKey, "tls-key", "", "file with the key of --tls-cert")
}

func (o *Options) validateTLS() error {
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key: want both, or none")
	}
	return nil
}

// certificate is the pair of --tls-cert and --tls-key as the files have it. One that
// can't be used, such as when it is half written, leaves the one before in use, and
// is told in the log.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	changes           *fsnotify.Watcher
	current           atomic.Pointer[tls.Certificate]
	// failed is what the log was told last, so that it is told once.
	failed string
}

// loadCertificate returns nil if there is no pair to load.
func loadCertificate(o *Options, log *slog.Logger) (*certificate, error) {
	if o.TLSCert == "" {
		return nil, nil
	}
	c := &certificate{certFile: filepath.Clean(o.TLSCert), keyFile: filepath.Clean(o.TLSKey), log: log}
	fault := func(err error) error {
		return fmt.Errorf("--tls-cert=%s --tls-key=%s: %w", o.TLSCert, o.TLSKey, err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, fault(err)
	}
	c.current.Store(&pair)
	if c.changes, err = fsnotify.NewWatcher(); err != nil {
		return nil, fault(err)
	}
	// The directories, because files are replaced by others: those of a Secret by a
	// link that points elsewhere.
	for _, file := range []string{c.certFile, c.keyFile} {
		if err := c.changes.Add(filepath.Dir(file)); err != nil {
			return nil, fault(errors.Join(err, c.changes.Close()))
		}
	}
	return c, nil
}

// follow reads the files again as they change, until ctx ends.
func (c *certificate) follow(ctx context.Context) {
	defer c.changes.Close()
	c.read() // what changed since they were loaded
	for {
		select {
		case event := <-c.changes.Events:
			// kubelet swaps a link called ..data.
			if event.Name == c.certFile || event.Name == c.keyFile || strings.HasPrefix(filepath.Base(event.Name), "..") {
				c.read()
			}
		case err := <-c.changes.Errors:
			c.log.Warn("Changes of the certificate may have been missed", "error", err)
			c.read()
		case <-ctx.Done():
			return
		}
	}
}

func (c *certificate) read() {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		if c.failed != err.Error() {
			c.failed = err.Error()
			c.log.Warn("Certificate could not be read: the one before stays in use", "error", err)
		}
		return
	}
	c.failed = ""
	if bytes.Equal(pair.Certificate[0], c.current.Load().Certificate[0]) {
		return
	}
	c.current.Store(&pair)
	c.log.Info("Certificate was read again", "notAfter", pair.Leaf.NotAfter)
}

// config is that of a server which also speaks HTTP/2.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
		NextProtos:     []string{"h2", "http/1.1"},
	}
}
