package clients

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-zk/docent/zktest/proxy"
)

// control is the server under a script, with the actions that the script may request.
type control struct {
	server
	proxy *proxy.Proxy
}

func newControl(t *testing.T, s server) *control {
	return &control{s, proxy.Start(t, s.Addr())}
}

// do carries out an action that a script requests. Clients that are to survive a restart use the
// proxy. A real server that is about to start leaves some connections open without an answer, and
// Curator and kazoo wait on such a connection until their session has ended, the Go driver longer.
func (c *control) do(request string) error {
	step, rest, _ := strings.Cut(request, " ")
	switch step {
	case "drop":
		c.proxy.DropConnections()
		return nil
	case "cut":
		return c.cut()
	case "mend":
		return c.proxy.Refuse(false)
	case "stop":
		return errors.Join(c.cut(), c.Stop())
	case "start":
		return errors.Join(c.Start(), c.proxy.Refuse(false))
	case "expire":
		return c.expire(rest)
	}
	return fmt.Errorf("unknown step %q", step)
}

func (c *control) cut() error {
	if err := c.proxy.Refuse(true); err != nil {
		return err
	}
	c.proxy.DropConnections()
	return nil
}

// expire takes "<id> <password>" in hexadecimal.
func (c *control) expire(session string) error {
	first, second, _ := strings.Cut(session, " ")
	id, err := strconv.ParseUint(first, 16, 64)
	password, err2 := hex.DecodeString(second)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("session %q: %w", session, err)
	}
	return c.Expire(int64(id), password)
}

// limited returns a context that ends after patience, or with the test.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
