package clients

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

func TestDriver(t *testing.T) {
	realzk.Need(t)
	onEach(t, func(t *testing.T, c *control) transcript {
		d := &driver{t: t, control: c}
		sections := []func(*driver){
			driverModes, driverVersions, driverErrors, driverMulti, driverReaped, driverLists, driverWords,
			driverACL, driverWatches, driverLock, driverCut, driverRestart, driverExpiry, driverSilence,
		}
		for _, section := range sections {
			section(d)
			d.closeAll()
		}
		d.seen.requireChecks(t)
		return d.seen
	})
}

const (
	driverSession = 20 * time.Second
	shortSession  = 8 * time.Second
	longSession   = time.Minute // longer than a restart of the server
)

var open = zk.WorldACL(zk.PermAll)

// driver is the state of the driver's script.
type driver struct {
	t       *testing.T
	control *control
	clients []*client
	seen    transcript
}

// client is a connection that has a session.
type client struct {
	*zk.Conn
	t      *testing.T
	events <-chan zk.Event
	states chan zk.State // all states; the driver drops events that are not received
}

func (d *driver) client() *client { return d.connect(d.control.Addr(), driverSession) }

// proxied returns a client whose connections can be cut.
func (d *driver) proxied() *client { return d.connect(d.control.proxy.Addr(), driverSession) }

func (d *driver) connect(addr string, session time.Duration) *client {
	d.t.Helper()
	states := make(chan zk.State, 10_000)
	conn, events, err := zk.Connect([]string{addr}, session, zk.WithLogInfo(false), zk.WithLogger(quiet{}),
		zk.WithEventCallback(func(event zk.Event) { states <- event.State }))
	require.NoError(d.t, err)
	c := &client{conn, d.t, events, states}
	d.clients = append(d.clients, c)
	d.t.Cleanup(c.end)
	c.await(zk.StateHasSession)
	return c
}

func (d *driver) closeAll() {
	for _, c := range d.clients {
		c.end()
	}
	d.clients = nil
}

// end closes the connection, also if it is closed already, and receives its last events, so that
// all its goroutines end.
func (c *client) end() {
	c.Close()
	for range c.events {
	}
}

// await waits for a state of the connection.
func (c *client) await(want zk.State) {
	c.t.Helper()
	late := time.After(patience)
	for {
		select {
		case state := <-c.states:
			if state == want {
				return
			}
		case <-late:
			c.t.Fatalf("waited too long for the state %v", want)
		}
	}
}

// next returns the next event of a watch.
func (d *driver) next(watch <-chan zk.Event) string {
	d.t.Helper()
	select {
	case event := <-watch:
		return fmt.Sprint(event.Type, " ", event.Path, " ", errors.Is(event.Err, zk.ErrSessionExpired))
	case <-time.After(patience):
		d.t.Fatal("waited too long for an event")
		return ""
	}
}

// ok records a check that passed, with the values that both servers must have.
func (d *driver) ok(check string, seen ...any) {
	line := check + ": " + strings.TrimSpace(fmt.Sprintln(seen...))
	d.seen = append(d.seen, line)
	d.t.Log(line)
}

func (d *driver) do(request string) {
	d.t.Helper()
	require.NoError(d.t, d.control.do(request), request)
}

// create creates a node that the check needs.
func (c *client) create(path, data string, flags int32) string {
	c.t.Helper()
	created, err := c.Create(path, []byte(data), flags, open)
	require.NoError(c.t, err, "create %s", path)
	return created
}

func (c *client) set(path, data string) *zk.Stat {
	c.t.Helper()
	stat, err := c.Set(path, []byte(data), -1)
	require.NoError(c.t, err, "set %s", path)
	return stat
}

func (c *client) exists(path string) bool {
	c.t.Helper()
	found, _, err := c.Exists(path)
	require.NoError(c.t, err, "exists %s", path)
	return found
}

// describe returns the values of a node that two servers must have in common: not the times of its
// changes, but their order.
func (c *client) describe(stat *zk.Stat) string {
	owner := map[int64]string{0: "none", c.SessionID(): "me"}[stat.EphemeralOwner]
	return fmt.Sprintf("version %d/%d/%d, %d bytes, %d children, owner %q, changed %+d, children changed %+d",
		stat.Version, stat.Cversion, stat.Aversion, stat.DataLength, stat.NumChildren, owner,
		stat.Mzxid-stat.Czxid, stat.Pzxid-stat.Czxid)
}

func (c *client) look(path string) string {
	c.t.Helper()
	_, stat, err := c.Get(path)
	require.NoError(c.t, err, "get %s", path)
	return c.describe(stat)
}

// quiet discards the driver's log, because the checks have all that matters.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
