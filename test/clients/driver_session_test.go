package clients

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func driverACL(d *driver) {
	owner, other := d.client(), d.client()
	require.NoError(d.t, owner.AddAuth("digest", []byte("ann:secret")))
	_, err := owner.Create("/private", []byte("x"), 0, zk.AuthACL(zk.PermAll))
	require.NoError(d.t, err)
	acl, _, err := owner.GetACL("/private")
	d.ok("ACL for its owner", acl, err)
	_, _, err = other.GetACL("/private")
	d.ok("ACL for another", err)
	_, _, err = other.Get("/private")
	d.ok("read by another", err)
	_, err = other.Set("/private", nil, -1)
	d.ok("set by another", err)
	_, err = other.Create("/private/child", nil, 0, open)
	d.ok("create by another", err)
	_, err = other.SetACL("/private", open, -1)
	d.ok("ACL set by another", err)
	readable := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead)...)
	stat, err := owner.SetACL("/private", readable, 0)
	require.NoError(d.t, err)
	d.ok("ACL changed", owner.describe(stat))
	acl, _, err = other.GetACL("/private")
	d.ok("ACL masked for another", acl, err)
	_, err = owner.SetACL("/private", readable, 0)
	d.ok("ACL at an old version", err)
	_, err = other.Create("/no-identity", nil, 0, zk.AuthACL(zk.PermAll))
	d.ok("empty identity", err)
}

func driverWatches(d *driver) {
	c, other := d.client(), d.client()
	_, _, coming, err := c.ExistsW("/watched")
	require.NoError(d.t, err)
	other.create("/watched", "", 0)
	d.ok("watch for a node to come", d.next(coming))
	_, _, data, err := c.GetW("/watched")
	require.NoError(d.t, err)
	_, _, children, err := c.ChildrenW("/watched")
	require.NoError(d.t, err)
	other.set("/watched", "1")
	d.ok("watch its data", d.next(data))
	other.create("/watched/child", "", 0)
	d.ok("watch its children", d.next(children))
	_, _, going, err := c.ExistsW("/watched/child")
	require.NoError(d.t, err)
	require.NoError(d.t, other.Delete("/watched/child", -1))
	d.ok("watch for a node to go", d.next(going))
}

func driverLock(d *driver) {
	one, two := d.client(), d.client()
	first, second := zk.NewLock(one.Conn, "/lock", open), zk.NewLock(two.Conn, "/lock", open)
	require.NoError(d.t, first.Lock())
	waiting := make(chan error, 1)
	go func() { waiting <- second.Lock() }()
	require.Eventually(d.t, func() bool {
		children, _, err := one.Children("/lock")
		return err == nil && len(children) == 2
	}, patience, pause, "the second is not in the queue")
	require.Empty(d.t, waiting, "both hold the lock")
	require.NoError(d.t, first.Unlock())
	d.ok("lock when it is released", <-waiting, second.Unlock())
	d.contend(one, first, two, second)
	children, _, err := one.Children("/lock")
	d.ok("lock leaves nothing", children, err)
}

// contend lets two clients acquire and release repeatedly. One of them holds the lock at a time.
func (d *driver) contend(one *client, first *zk.Lock, two *client, second *zk.Lock) {
	const rounds = 5
	var inside atomic.Int32
	visit := func(c *client, lock *zk.Lock) error {
		for range rounds {
			if err := lock.Lock(); err != nil {
				return err
			}
			if n := inside.Add(1); n != 1 {
				return fmt.Errorf("%d inside", n)
			}
			if _, _, err := c.Exists("/"); err != nil { // time for the other to acquire, if it can
				return err
			}
			inside.Add(-1)
			if err := lock.Unlock(); err != nil {
				return err
			}
		}
		return nil
	}
	other := make(chan error, 1)
	go func() { other <- visit(two, second) }()
	d.ok("lock under contention", visit(one, first), <-other)
}

// A client receives what happened while it was away when it reconnects.
func driverCut(d *driver) {
	c, other := d.proxied(), d.client()
	other.create("/cut", "", 0)
	other.create("/cut/goes", "", 0)
	c.create("/cut/mine", "", zk.FlagEphemeral)
	require.NoError(d.t, c.AddAuth("digest", []byte("eve:secret")))
	_, err := c.Create("/cut/private", nil, 0, zk.AuthACL(zk.PermAll))
	require.NoError(d.t, err)
	session := c.SessionID()
	_, _, data, err := c.GetW("/cut")
	require.NoError(d.t, err)
	_, _, children, err := c.ChildrenW("/cut")
	require.NoError(d.t, err)
	_, _, coming, err := c.ExistsW("/cut/comes")
	require.NoError(d.t, err)
	_, _, going, err := c.ExistsW("/cut/goes")
	require.NoError(d.t, err)
	_, _, quiet, err := c.GetW("/cut/mine")
	require.NoError(d.t, err)
	d.do("cut")
	c.await(zk.StateDisconnected)
	other.set("/cut", "changed")
	other.create("/cut/comes", "", 0)
	require.NoError(d.t, other.Delete("/cut/goes", -1))
	d.do("mend")
	c.await(zk.StateHasSession)
	require.Equal(d.t, session, c.SessionID())
	d.ok("missed events", d.next(data), d.next(children), d.next(coming), d.next(going))
	d.ok("still there", c.look("/cut/mine"), c.look("/cut/private"))
	require.Empty(d.t, quiet, "a watch fired though nothing happened")
	other.set("/cut/mine", "now")
	d.ok("watch after a reconnect", d.next(quiet))
}

// A restarted server keeps sessions.
func driverRestart(d *driver) {
	c := d.connect(d.control.proxy.Addr(), longSession)
	session := c.SessionID()
	c.create("/restarted", "0", zk.FlagEphemeral)
	_, _, watch, err := c.GetW("/restarted")
	require.NoError(d.t, err)
	d.do("stop")
	c.await(zk.StateDisconnected)
	d.do("start")
	c.await(zk.StateHasSession)
	require.Equal(d.t, session, c.SessionID())
	d.ok("node across a restart", c.look("/restarted"))
	d.client().set("/restarted", "1")
	d.ok("watch across a restart", d.next(watch))
}

func driverExpiry(d *driver) {
	c, other := d.client(), d.client()
	session := c.SessionID()
	c.create("/expired", "", zk.FlagEphemeral)
	_, _, deletion, err := other.ExistsW("/expired")
	require.NoError(d.t, err)
	_, _, lost, err := c.ExistsW("/expired-watched")
	require.NoError(d.t, err)
	d.do(fmt.Sprintf("expire %x %s", uint64(session), hex.EncodeToString(password(c))))
	d.ok("the others see the end of a session", d.next(deletion), other.exists("/expired"))
	c.await(zk.StateExpired)
	d.ok("its watches receive the end", d.next(lost))
	c.await(zk.StateHasSession)
	require.NotEqual(d.t, session, c.SessionID(), "the old session has not ended")
	path := c.create("/expired", "", zk.FlagEphemeral)
	d.ok("a new session", c.look(path))
}

// Only the server ends the session, when it has received nothing for long enough.
func driverSilence(d *driver) {
	c, other := d.connect(d.control.proxy.Addr(), shortSession), d.client()
	session := c.SessionID()
	c.create("/silent", "", zk.FlagEphemeral)
	_, _, deletion, err := other.ExistsW("/silent")
	require.NoError(d.t, err)
	d.do("cut")
	c.await(zk.StateDisconnected)
	d.ok("the end of a silent session", d.next(deletion))
	d.do("mend")
	c.await(zk.StateExpired)
	c.await(zk.StateHasSession)
	require.NotEqual(d.t, session, c.SessionID(), "the old session has not ended")
	d.ok("after silence", c.exists("/silent"))
}

// password returns the session's password, which the driver does not export.
func password(c *client) []byte {
	return reflect.ValueOf(c.Conn).Elem().FieldByName("passwd").Bytes()
}
