package clients

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func driverModes(d *driver) {
	c := d.client()
	c.create("/modes", "", 0)
	for _, flags := range []int32{0, zk.FlagEphemeral, zk.FlagSequence, zk.FlagEphemeral | zk.FlagSequence} {
		path := c.create(fmt.Sprintf("/modes/%d-", flags), "data", flags)
		d.ok("create", path, c.look(path))
	}
	path, err := c.CreateContainer("/modes/container", []byte("data"), zk.FlagContainer, open)
	d.ok("create a container", path, err, c.look("/modes/container"))
	for _, flags := range []int32{zk.FlagTTL, zk.FlagPersistentSequentialWithTTL} {
		path, err := c.CreateTTL(fmt.Sprintf("/modes/ttl-%d-", flags), []byte("data"), flags, open, time.Hour)
		require.NoError(d.t, err)
		d.ok("create a TTL node", path, c.look(path))
	}
	guarded, err := c.CreateProtectedEphemeralSequential("/modes/p-", nil, open)
	d.ok("create with protection", regexp.MustCompile("[0-9a-f]{32}").ReplaceAllString(guarded, "<guid>"), err)
	d.ok("parent", c.look("/modes"))
}

func driverVersions(d *driver) {
	c := d.client()
	c.create("/versions", "0", 0)
	stat, err := c.Set("/versions", []byte("one"), 0)
	require.NoError(d.t, err)
	d.ok("set at version", c.describe(stat))
	_, err = c.Set("/versions", []byte("x"), 0)
	d.ok("set at an old version", err)
	d.ok("set at any version", c.describe(c.set("/versions", "two")))
	data, stat, err := c.Get("/versions")
	require.NoError(d.t, err)
	d.ok("read", string(data), c.describe(stat))
	d.ok("delete at an old version", c.Delete("/versions", 1))
	d.ok("delete at version", c.Delete("/versions", 2))
	d.ok("exists when deleted", c.exists("/versions"))
	for _, data := range [][]byte{nil, {}} {
		path, err := c.Create("/empty-", data, zk.FlagSequence, open)
		require.NoError(d.t, err)
		read, _, err := c.Get(path)
		d.ok("no data", read == nil, len(read), err)
	}
}

func driverErrors(d *driver) {
	c := d.client()
	c.create("/errors", "", 0)
	c.create("/errors/child", "", 0)
	c.create("/errors-ephemeral", "", zk.FlagEphemeral)
	d.ok("exists on a missing node", c.exists("/errors/missing"))
	_, _, err := c.Get("/errors/missing")
	d.ok("read a missing node", err)
	_, _, err = c.Children("/errors/missing")
	d.ok("children of a missing node", err)
	_, err = c.Set("/errors/missing", nil, -1)
	d.ok("set a missing node", err)
	d.ok("delete a missing node", c.Delete("/errors/missing", -1))
	d.ok("delete with children", c.Delete("/errors", -1))
	for _, path := range []string{"/errors/missing/child", "/errors/child", "/errors-ephemeral/child", "/zookeeper",
		"/errors/\u0001"} {
		_, err := c.Create(path, nil, 0, open)
		d.ok(fmt.Sprintf("create %q", path), err)
	}
	_, err = c.Create("/errors/no-identity", nil, 0, nil)
	d.ok("create without ACL", err)
	_, err = c.CreateTTL("/errors/ttl", nil, zk.FlagTTL, open, 0)
	d.ok("create with TTL 0", err)
	_, err = c.IncrementalReconfig(nil, []string{"1"}, -1)
	d.ok("reconfig", err)
}

func driverMulti(d *driver) {
	c := d.client()
	c.create("/tx", "0", 0)
	responses, err := c.Multi(
		&zk.CreateRequest{Path: "/tx/a", Data: []byte("a"), Acl: open},
		&zk.CreateRequest{Path: "/tx/s-", Acl: open, Flags: zk.FlagEphemeral | zk.FlagSequence},
		&zk.CheckVersionRequest{Path: "/tx", Version: 0},
		&zk.SetDataRequest{Path: "/tx", Data: []byte("1"), Version: 0},
		&zk.DeleteRequest{Path: "/tx/a", Version: -1},
	)
	require.NoError(d.t, err)
	for _, r := range responses {
		stat := "no stat"
		if r.Stat != nil {
			stat = c.describe(r.Stat)
		}
		d.ok("in a multi", r.String, r.Error, stat)
	}
	responses, err = c.Multi(
		&zk.CreateRequest{Path: "/tx/b", Acl: open},
		&zk.SetDataRequest{Path: "/tx", Version: 7},
		&zk.DeleteRequest{Path: "/tx/missing", Version: -1},
	)
	d.ok("a failed multi", err)
	for _, r := range responses {
		d.ok("in a failed multi", r.Error)
	}
	children, _, err := c.Children("/tx")
	d.ok("nothing of it is done", children, err)
}

// The server deletes containers when they are empty again, and TTL nodes when they are old.
func driverReaped(d *driver) {
	c := d.client()
	for _, path := range []string{"/container", "/container-unused"} {
		_, err := c.CreateContainer(path, nil, zk.FlagContainer, open)
		require.NoError(d.t, err)
	}
	_, err := c.CreateTTL("/ttl", nil, zk.FlagTTL, open, 100*time.Millisecond)
	require.NoError(d.t, err)
	c.create("/container/child", "", 0)
	_, _, emptied, err := c.ExistsW("/container")
	require.NoError(d.t, err)
	require.NoError(d.t, c.Delete("/container/child", -1))
	d.ok("an emptied container is deleted", d.next(emptied), c.exists("/container"))
	if found, _, old, err := c.ExistsW("/ttl"); found {
		d.next(old)
	} else {
		require.NoError(d.t, err)
	}
	d.ok("an old TTL node is deleted", c.exists("/ttl"))
	d.ok("an unused container is kept", c.exists("/container-unused"))
}

func driverLists(d *driver) {
	c := d.client()
	c.create("/lists", "", 0)
	for _, child := range []string{"b", "a", "c"} {
		c.create("/lists/"+child, child, zk.FlagEphemeral)
	}
	children, stat, err := c.Children("/lists")
	slices.Sort(children)
	d.ok("children", children, err, c.describe(stat))
	path, err := c.Sync("/lists")
	d.ok("sync", path, err)
	d.ok("configuration", c.look("/zookeeper/config"))
}

func driverWords(d *driver) {
	servers := []string{d.control.Addr()}
	d.ok("ruok", zk.FLWRuok(servers, patience))
	c := d.client()
	cons, ok := zk.FLWCons(servers, patience)
	require.Len(d.t, cons, 1)
	found := slices.ContainsFunc(cons[0].Clients, func(s *zk.ServerClient) bool { return s.SessionID == c.SessionID() })
	d.ok("cons", ok, cons[0].Error, found)
}
