package peer

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// driver is go-zookeeper/zk. It uses its own lock if locks is true. Otherwise it is the floor,
// which creates and deletes a node and sends nothing else.
type driver struct{ locks bool }

func (d driver) version() string {
	what := "create and delete"
	if d.locks {
		what = "Lock"
	}
	return what + " of go-zookeeper/zk " + dependency("github.com/go-zookeeper/zk")
}

func (d driver) connect(_ context.Context, servers string) (client, error) {
	conn, events, err := zk.Connect(strings.Split(servers, ","), SessionTimeout, zk.WithLogInfo(false),
		zk.WithLogger(silence{}), zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return dial(ctx, network, address)
		}))
	if err != nil {
		return nil, err
	}
	for deadline := time.After(patience); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return driverClient{conn, d.locks}, nil
			}
		case <-deadline:
			conn.Close()
			return nil, errors.New("no session")
		}
	}
}

type silence struct{}

func (silence) Printf(string, ...any) {}

type driverClient struct {
	*zk.Conn
	locks bool
}

func (c driverClient) close() { c.Conn.Close() }

func (c driverClient) children(_ context.Context, path string) (int, error) {
	_, stat, err := c.Exists(path)
	if err != nil {
		return 0, err
	}
	return int(stat.NumChildren), nil
}

var (
	openACL = zk.WorldACL(zk.PermAll)
	address = []byte("192.168.1.10") // the data of the nodes of Curator's locks, and so of docent's
)

func (c driverClient) lock(kind, path string) (lock, error) {
	switch {
	case c.locks && kind == "mutex":
		return driverLock{zk.NewLock(c.Conn, path, openACL), c.Conn, path}, nil
	case !c.locks && kind == "mutex":
		return &bareNode{c.Conn, path, ""}, c.parents(path)
	case !c.locks && kind == "multi":
		return &bareNodes{conn: c.Conn, paths: parts(path)}, c.parents(parts(path)...)
	}
	return nil, errUnsupported
}

// parents creates the missing parents.
func (c driverClient) parents(paths ...string) error {
	for _, path := range paths {
		for i := range path + "/" {
			if i == 0 || (path + "/")[i] != '/' {
				continue
			}
			if _, err := c.Create(path[:i], nil, 0, openACL); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
	}
	return nil
}

func (c driverClient) create(path string) error {
	if err := c.parents(path[:strings.LastIndex(path, "/")]); err != nil {
		return err
	}
	_, err := c.Create(path, nil, zk.FlagEphemeral, openACL)
	return err
}

// watch first sends a sync, so that the server has the node that another client has created.
func (c driverClient) watch(path string) (<-chan struct{}, error) {
	if _, err := c.Sync(path); err != nil {
		return nil, err
	}
	_, _, events, err := c.GetW(path)
	if err != nil {
		return nil, err
	}
	deleted := make(chan struct{})
	go func() {
		<-events
		close(deleted)
	}()
	return deleted, nil
}

func (c driverClient) delete(path string) error { return c.Delete(path, -1) }

type driverLock struct {
	*zk.Lock
	conn *zk.Conn
	path string
}

func (l driverLock) acquire(context.Context) error { return l.LockWithData(address) }
func (l driverLock) release() error                { return l.Unlock() }

// probe checks that the node still exists. No other client has it.
func (l driverLock) probe(ctx context.Context) error {
	for {
		children, _, err := l.conn.Children(l.path)
		if err == nil && len(children) == 0 {
			return errors.New("lost")
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Millisecond) // some errors are immediate
	}
}

// prefix is the prefix of Curator's nodes, with a random id.
const prefix = "/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-"

// bareNode is a node like that of a lock.
type bareNode struct {
	conn *zk.Conn
	path string
	node string
}

func (n *bareNode) acquire(context.Context) (err error) {
	n.node, err = n.conn.Create(n.path+prefix, address, zk.FlagEphemeral|zk.FlagSequence, openACL)
	return err
}

func (n *bareNode) release() error { return n.conn.Delete(n.node, -1) }

// bareNodes are nodes like those of a multi-lock. All are created in one transaction, and deleted
// in another.
type bareNodes struct {
	conn    *zk.Conn
	paths   []string
	deletes []any
}

func (n *bareNodes) acquire(context.Context) error {
	var creates []any
	for _, path := range n.paths {
		creates = append(creates, &zk.CreateRequest{
			Path: path + prefix, Data: address, Acl: openACL, Flags: zk.FlagEphemeral | zk.FlagSequence,
		})
	}
	results, err := n.conn.Multi(creates...)
	n.deletes = nil
	for _, r := range results {
		n.deletes = append(n.deletes, &zk.DeleteRequest{Path: r.String, Version: -1})
	}
	return err
}

func (n *bareNodes) release() error {
	_, err := n.conn.Multi(n.deletes...)
	return err
}
