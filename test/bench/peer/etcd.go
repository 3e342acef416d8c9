package peer

import (
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcd is the mutex of etcd's own client, on a server of etcd.
type etcd struct{}

func (etcd) version() string {
	return "concurrency.Mutex of etcd's client " + dependency("go.etcd.io/etcd/client/v3")
}

func (etcd) connect(ctx context.Context, servers string) (client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(servers, ","), Logger: zap.NewNop(),
		DialTimeout: patience})
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(c, concurrency.WithTTL(int(SessionTimeout.Seconds())),
		concurrency.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return etcdClient{c, s}, nil
}

type etcdClient struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func (c etcdClient) lock(kind, path string) (lock, error) {
	if kind != "mutex" {
		return nil, errUnsupported
	}
	return etcdLock{concurrency.NewMutex(c.session, path)}, nil
}

func (c etcdClient) children(ctx context.Context, path string) (int, error) {
	all, err := c.client.Get(ctx, path+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(all.Count), nil
}

func (c etcdClient) close() {
	_ = c.session.Close()
	_ = c.client.Close()
}

type etcdLock struct{ *concurrency.Mutex }

func (l etcdLock) acquire(ctx context.Context) error { return l.Lock(ctx) }
func (l etcdLock) release() error                    { return l.Unlock(context.Background()) }
