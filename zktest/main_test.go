package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/zktest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// The clients of tests in bubbles ping each third of their timeout. They give up a connection after
// two thirds without an answer, and pause for reconnectPause before they connect again.
const (
	timeout        = 9 * time.Second
	ping           = timeout / 3
	silence        = timeout * 2 / 3
	reconnectPause = time.Second
)

// enough is an upper bound for what takes real time.
const enough = 30 * time.Second

// bubble runs a test in virtual time with its own server.
func bubble(t *testing.T, test func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, zktest.Start(t, opts...)) })
}

// connect returns a client of the given name with a session, in memory.
func connect(t *testing.T, srv *zktest.Server, name string) *zk.Conn {
	t.Helper()
	return connectTo(t, srv.MemAddr(), srv.Client(name))
}

func connectTo(t *testing.T, host string, client *zktest.Client) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{host}, timeout, zk.WithDialer(client.Dialer()), zk.WithLogger(quiet{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	await(t, events, zk.StateHasSession)
	return conn
}

// connectTCP returns a client with a session over TCP. It is closed when the test ends.
func connectTCP(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	return connectTCPFor(t, addr, timeout)
}

// connectTCPFor is connectTCP with another session timeout. The driver gives up a silent server after two thirds of
// it, and sends pings after a third.
func connectTCPFor(t *testing.T, addr string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	await(t, events, zk.StateHasSession)
	return conn
}

func await(t *testing.T, events <-chan zk.Event, want zk.State) {
	t.Helper()
	over := time.After(enough)
	for {
		select {
		case e := <-events:
			if e.State == want {
				return
			}
		case <-over:
			require.FailNow(t, "no such state of the client", "%v", want)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

var open = zk.WorldACL(zk.PermAll)

// create creates an open persistent node.
func create(conn *zk.Conn, path string) error {
	_, err := conn.Create(path, nil, 0, open)
	return err
}

func createEphemeral(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	_, err := conn.Create(path, nil, zk.FlagEphemeral, open)
	require.NoError(t, err)
}

// call is a call that may block.
type call struct {
	done chan struct{}
	err  error
	took time.Duration
}

// start starts a call, and returns when nothing more happens in its bubble without time.
func start(fn func() error) *call {
	c := &call{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(c.done)
		c.err = fn()
		c.took = time.Since(began)
	}()
	synctest.Wait()
	return c
}

func (c *call) ended() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// wait returns the result of the call. It fails if the call hangs.
func (c *call) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(time.Hour):
		require.FailNow(t, "the call does not end")
	}
	return c.err
}

// soon returns a context for something that must happen.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	t.Cleanup(cancel)
	return ctx
}

// event returns the event of a watch, if there is one.
func event(watch <-chan zk.Event) string {
	synctest.Wait()
	select {
	case e := <-watch:
		return e.Type.String() + " " + e.Path
	default:
		return ""
	}
}

// traced returns the entries of one kind.
func traced(srv *zktest.Server, what string) []zktest.Entry {
	var found []zktest.Entry
	for _, e := range srv.Trace().Entries {
		if e.What == what {
			found = append(found, e)
		}
	}
	return found
}
