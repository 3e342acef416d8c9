package peer

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
)

// driver is a program that uses the Go driver of ZooKeeper without docent.
func driver(lock func(s *zk.Conn, path string, c Config) Lock) Program {
	return func(ctx context.Context, c Config) (func(string) (Lock, error), error) {
		conn, events, err := zk.Connect(c.Servers, c.Lease, zk.WithLogInfo(false), zk.WithLogger(silence{}))
		if err != nil {
			return nil, err
		}
		for {
			select {
			case e := <-events:
				if e.State == zk.StateHasSession {
					return func(name string) (Lock, error) { return lock(conn, "/"+name, c), nil }, nil
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

type silence struct{}

func (silence) Printf(string, ...any) {}

var acl = zk.WorldACL(zk.PermAll)

// sessionHeld is a lock that is the session's. All that the driver tells is the state of the session.
type sessionHeld struct {
	conn    *zk.Conn
	session int64
	release func() error
}

func (h sessionHeld) Token() int64 { return 0 }

func (h sessionHeld) Look(context.Context) State {
	return stateOf(h.conn.State() == zk.StateHasSession && h.conn.SessionID() == h.session)
}

func (h sessionHeld) Release(context.Context) error { return h.release() }

// zkLock is the driver's own lock.
type zkLock struct {
	conn *zk.Conn
	path string
}

func driverLock(conn *zk.Conn, path string, _ Config) Lock { return zkLock{conn, path} }

func (l zkLock) Acquire(context.Context) (Held, error) {
	lock := zk.NewLock(l.conn, l.path, acl)
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	return sessionHeld{l.conn, l.conn.SessionID(), lock.Unlock}, nil
}

// blind is a lock that is built by hand, and has nothing to ask.
type blind struct {
	release func(ctx context.Context) error
}

func (blind) Token() int64                        { return 0 }
func (blind) Look(context.Context) State          { return Unknown }
func (b blind) Release(ctx context.Context) error { return b.release(ctx) }

// node is the lock of the recipe with one ephemeral node: the program that creates it has the lock,
// and all others watch it.
type node struct {
	conn    *zk.Conn
	path    string
	waiting func()
}

func ephemeralNode(conn *zk.Conn, path string, c Config) Lock { return node{conn, path, c.Waiting} }

func (l node) Acquire(ctx context.Context) (Held, error) {
	for {
		_, err := l.conn.Create(l.path, nil, zk.FlagEphemeral, acl)
		if err == nil {
			return blind{func(context.Context) error { return l.conn.Delete(l.path, -1) }}, nil
		}
		if !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
		there, _, deleted, err := l.conn.ExistsW(l.path)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		l.waiting()
		select {
		case <-deleted:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// queue is the lock of the recipe with sequential nodes, as it is often copied: when the node before
// its own is deleted, the program has the lock, without another look.
type queue struct{ node }

func naiveQueue(conn *zk.Conn, path string, c Config) Lock { return queue{node{conn, path, c.Waiting}} }

func (l queue) Acquire(ctx context.Context) (Held, error) {
	if _, err := l.conn.Create(l.path, nil, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	own, err := l.conn.Create(l.path+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, acl)
	if err != nil {
		return nil, err
	}
	held := blind{func(context.Context) error { return l.conn.Delete(own, -1) }}
	children, _, err := l.conn.Children(l.path)
	if err != nil {
		return nil, err
	}
	slices.Sort(children)
	i := slices.Index(children, path.Base(own))
	if i <= 0 {
		return held, nil
	}
	there, _, deleted, err := l.conn.ExistsW(l.path + "/" + children[i-1])
	if err != nil || !there {
		return held, err
	}
	l.waiting()
	select {
	case <-deleted:
		return held, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
