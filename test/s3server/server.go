// Package s3server runs a real S3 server on this machine for tests: versitygw, a
// gateway to a folder, with signatures, metadata, ranges and uploads in parts.
package s3server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// startTime is what a server gets to listen.
const startTime = 20 * time.Second

// Region is the servers'.
const Region = "eu-test-1"

// Server is one that listens on loopback, with TLS.
type Server struct {
	// Address is its host and port, and CAFile holds who signed its certificate.
	Address string
	CAFile  string
	// AccessKey and SecretKey may do everything.
	AccessKey, SecretKey string

	dir    string
	output *os.File
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended, with the error end
	end    error
}

// Start starts a server without buckets whose files are all in dir, which exists.
func Start(ctx context.Context, dir string) (*Server, error) {
	s := &Server{dir: dir, CAFile: filepath.Join(dir, "ca.pem"), AccessKey: "AKIATEST", SecretKey: "secret-of-the-test"}
	for _, folder := range []string{"data", "iam"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	if err := WriteCertificates(dir, net.IPv4(127, 0, 0, 1)); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.Address = l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

// Restart starts the server again where it was, after Stop.
func (s *Server) Restart(ctx context.Context) error {
	path, err := Program(ctx)
	if err != nil {
		return err
	}
	if s.output, err = os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	s.cmd = exec.Command(path,
		"--port", s.Address, "--region", Region, "--iam-dir", filepath.Join(s.dir, "iam"), "--keep-alive",
		"--cert", filepath.Join(s.dir, "server.pem"), "--key", filepath.Join(s.dir, "server.key"),
		"posix", filepath.Join(s.dir, "data"))
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey, "HOME=" + s.dir}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	// A test that panics stops nothing: the server ends with the thread that starts
	// it, which so lives as long as the test does.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	s.exited = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.end = s.cmd.Wait()
			close(s.exited)
		}
	}()
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("start the S3 server: %w", err), s.output.Close())
	}
	return s.await(ctx)
}

// await returns once the server takes connections.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("tcp", s.Address); err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return errors.Join(fmt.Errorf("the S3 server ended; its log is %s/log", s.dir), s.end)
		case <-ctx.Done():
			s.Stop()
			return fmt.Errorf("the S3 server doesn't listen on %s; its log is %s/log", s.Address, s.dir)
		}
	}
}

// Stop kills the server. What is stored stays.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
	_ = s.output.Close()
}

// Client returns a client that may do everything.
func (s *Server) Client() (*minio.Core, error) {
	return Connect(s.Address, s.CAFile, s.AccessKey, s.SecretKey)
}

// Connect returns a client of the server at address, host:port, whose certificate
// is of the authority in caFile.
func Connect(address, caFile, accessKey, secretKey string) (*minio.Core, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	if transport.TLSClientConfig.RootCAs, err = pool(caFile); err != nil {
		return nil, err
	}
	return minio.NewCore(address, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Secure: true, Region: Region, Transport: transport,
	})
}

// MakeBucket makes a bucket.
func (s *Server) MakeBucket(ctx context.Context, name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	return c.MakeBucket(ctx, name, minio.MakeBucketOptions{Region: Region})
}

// Program builds the server that hack/tools/versitygw pins, once per version: Go
// keeps it in its cache. It is linked statically.
func Program(ctx context.Context) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", "versitygw")
	cmd.Dir = filepath.Join(root, "hack", "tools", "versitygw")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("build the S3 server: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// root is the checkout.
func root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
