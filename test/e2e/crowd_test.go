package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/session"
)

// crowd is a number of calls under way, through one load balancer, that end when
// they are let go: commands that write down that they run, and uploads.
type crowd struct {
	*tenant
	balancer *cluster.Balancer
	sessions []*session.Session
	names    []string
	letGo    chan struct{}

	all      sync.WaitGroup
	commands []commandEnd
	uploads  []uploadEnd
	contents [][]byte
}

type commandEnd struct {
	result session.Result
	err    error
}

// newCrowd connects the clients of all sessions, of both eras, and makes their pods.
func newCrowd(ctx context.Context) *crowd {
	GinkgoHelper()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(end)
	c := &crowd{tenant: newTenant(ctx), names: sessionNames("s", rollSessions), letGo: make(chan struct{})}
	var err error
	c.balancer, err = admin.Balance(life, gatewayService, cluster.GatewayPort)
	Expect(err).NotTo(HaveOccurred())
	for i, name := range c.names {
		target := c.through(name)
		target.Protocol = []string{session.Legacy, session.Modern}[i%2]
		c.sessions = append(c.sessions, connect(ctx, target))
	}
	c.eachSession(func(s *session.Session, _ string) error {
		_, err := s.Bash(ctx, "true")
		return err
	})
	return c
}

// through is a session of the tenant's, through the load balancer.
func (c *crowd) through(id string) session.Target { return c.targetAtAddress(c.balancer.Address, id) }

// eachSession does the same in all sessions at once.
func (c *crowd) eachSession(do func(s *session.Session, name string) error) {
	GinkgoHelper()
	errs := make([]error, len(c.sessions))
	var all sync.WaitGroup
	for i, s := range c.sessions {
		all.Go(func() { errs[i] = do(s, c.names[i]) })
	}
	all.Wait()
	Expect(errs).To(HaveEach(BeNil()))
}

// begin begins so many commands and uploads, spread over the sessions, and waits
// until the load balancer carries all of them.
func (c *crowd) begin(ctx context.Context, commands, uploads int) {
	GinkgoHelper()
	c.commands, c.uploads = make([]commandEnd, commands), make([]uploadEnd, uploads)
	for i := range commands {
		c.all.Go(func() {
			// The first of a session runs, the others wait for it.
			command := fmt.Sprintf("echo %d >>began; until [ -e go ]; do sleep 0.1; done; echo %d >>ran; echo done %d", i, i, i)
			c.commands[i].result, c.commands[i].err = c.sessions[i%rollSessions].BashWithin(ctx, command, callTime)
		})
	}
	for i := range uploads {
		content := make([]byte, uploadBytes)
		rand.Read(content) // never fails (crypto/rand)
		c.contents = append(c.contents, content)
		c.all.Go(func() {
			file, err := session.Upload(ctx, c.through(c.names[i%rollSessions]), fmt.Sprintf("file-%d", i), c.held(ctx, content))
			c.uploads[i] = uploadEnd{file: file, err: err}
		})
	}
	Expect(c.balancer.Await(ctx, func(_ []string, inFlight map[string]int) bool {
		n := 0
		for _, of := range inFlight {
			n += of
		}
		return n >= commands+uploads
	})).To(Succeed())
}

// held gives a content little by little until the crowd is let go, and then the rest.
func (c *crowd) held(ctx context.Context, content []byte) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		rest := content
		for {
			select {
			case <-c.letGo:
				_, err := writer.Write(rest)
				writer.CloseWithError(err)
				return
			case <-ctx.Done():
				writer.CloseWithError(ctx.Err())
				return
			case <-time.After(time.Second): // of the 20 s that each piece may take
			}
			if _, err := writer.Write(rest[:256]); err != nil {
				return // the upload has ended
			}
			rest = rest[256:]
		}
	}()
	return reader
}

// release lets all calls end, and waits until they have.
func (c *crowd) release(ctx context.Context) {
	GinkgoHelper()
	close(c.letGo)
	c.eachSession(func(s *session.Session, _ string) error { return s.WriteFile(ctx, "go", "") })
	c.all.Wait()
}

// ran gives how often each command wrote its number.
func (c *crowd) ran(ctx context.Context) map[string]int {
	GinkgoHelper()
	var mu sync.Mutex
	times := map[string]int{}
	c.eachSession(func(s *session.Session, _ string) error {
		result, err := s.Bash(ctx, "cat ran 2>/dev/null || true")
		mu.Lock()
		defer mu.Unlock()
		for _, number := range strings.Fields(result.Stdout) {
			times[number]++
		}
		return err
	})
	return times
}

// uploadIsThere compares a file in its session with what was sent.
func (c *crowd) uploadIsThere(ctx context.Context, i int) {
	GinkgoHelper()
	Expect(c.uploads[i].file.Name).To(Equal(fmt.Sprintf("file-%d", i)), "no name was taken by a second one")
	sum256 := run(ctx, c.sessions[i%rollSessions], fmt.Sprintf("sha256sum <uploads/file-%d", i))
	Expect(strings.Fields(sum256)[0]).To(Equal(sum(c.contents[i])), "content of upload %d", i)
}
