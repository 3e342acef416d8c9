package peer

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes"
)

func connectEtcd(c Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: c.Servers, Logger: zap.NewNop(), DialTimeout: time.Minute,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: c.Lease})
}

var errCompared = errors.New("the lock is not held any more")

// put writes if a comparison holds.
func put(ctx context.Context, c *clientv3.Client, name string, cmp clientv3.Cmp) error {
	done, err := c.Txn(ctx).If(cmp).Then(clientv3.OpPut("data/"+name, "")).Commit()
	if err == nil && !done.Succeeded {
		err = errCompared
	}
	return err
}

// docentOnEtcd is contrib/etcdlock.
func docentOnEtcd(_ context.Context, c Config) (func(string) (Lock, error), error) {
	etcd, err := connectEtcd(c)
	if err != nil {
		return nil, err
	}
	client, err := etcdlock.NewClient(etcd, etcdlock.WithTTL(c.Lease))
	if err != nil {
		return nil, err
	}
	return func(name string) (Lock, error) {
		lock, err := etcdlock.New(client, name)
		return locker{lock, func(ctx context.Context, h *recipes.Hold) error {
			cmp, err := client.Cmp(h)
			if err != nil {
				return err
			}
			return put(ctx, etcd, name, cmp)
		}}, err
	}, nil
}

// concurrencyMutex is the mutex of etcd's own client. Its documentation gives the revision of its
// header as a token, and IsOwner to compare in transactions. A program that has lost its session makes
// another one.
func concurrencyMutex(_ context.Context, c Config) (func(string) (Lock, error), error) {
	etcd, err := connectEtcd(c)
	if err != nil {
		return nil, err
	}
	m := &mutexes{etcd: etcd, ttl: int(c.Lease.Seconds())}
	if err := m.renew(); err != nil {
		return nil, err
	}
	return func(name string) (Lock, error) { return etcdLock{m, name}, nil }, nil
}

type mutexes struct {
	etcd    *clientv3.Client
	ttl     int
	session *concurrency.Session
}

func (m *mutexes) renew() (err error) {
	m.session, err = concurrency.NewSession(m.etcd, concurrency.WithTTL(m.ttl))
	return err
}

type etcdLock struct {
	*mutexes
	name string
}

func (l etcdLock) Acquire(ctx context.Context) (Held, error) {
	select {
	case <-l.session.Done():
		if err := l.renew(); err != nil {
			return nil, err
		}
	default:
	}
	m := concurrency.NewMutex(l.session, l.name)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return etcdHeld{l, l.session, m}, nil
}

type etcdHeld struct {
	etcdLock
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (h etcdHeld) Token() int64 { return h.mutex.Header().Revision }

func (h etcdHeld) Look(context.Context) State {
	select {
	case <-h.session.Done():
		return Lost
	default:
		return Valid
	}
}

func (h etcdHeld) Write(ctx context.Context) error {
	return put(ctx, h.etcd, h.name, h.mutex.IsOwner())
}

func (h etcdHeld) Release(ctx context.Context) error { return h.mutex.Unlock(ctx) }
