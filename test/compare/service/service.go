// Package service starts the services that the locks under comparison are on, in processes and folders of
// their own, and has them fail: ZooKeeper, etcd, Redis, PostgreSQL, MariaDB. It needs Debian's packages
// for them: see scripts/deps.sh.
package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/test/compare/peer"
)

// Options are how a service is started.
type Options struct {
	Replicas bool // it can fail over
	Clock    bool // its clock can be set
	Count    bool // its requests can be counted, which may make it slower
}

// Service is a service that runs. Its methods must not be called concurrently, except Addrs.
type Service interface {
	// Addrs returns the addresses that programs connect to. Failover changes them.
	Addrs() []string
	// Restart kills a server and starts it again, with its data or without.
	Restart(ctx context.Context, wipe bool) error
	// Lag has replicas fall behind from now on, unless the service waits for them.
	Lag(ctx context.Context) error
	// Failover kills the server that answers, and has another one answer.
	Failover(ctx context.Context) error
	// SetClock sets the clock of a server forward by an hour.
	SetClock() error
	// Delete deletes the record of the holder of a lock, as an operator does by mistake.
	Delete(ctx context.Context, lock string) error
	// Requests returns how many requests the servers have got.
	Requests(ctx context.Context) (int64, error)
	Close() error
}

// ErrUnsupported means that a service has no such failure, or that it cannot be brought about.
var ErrUnsupported = errors.New("not run")

var errBehind = errors.New("the replica is behind")

func unsupported(reason string) error { return fmt.Errorf("%w: %s", ErrUnsupported, reason) }

// Start starts a service, and returns when it answers.
func Start(ctx context.Context, name string, o Options) (Service, error) {
	starts := map[string]func(context.Context, Options) (Service, error){
		peer.ZooKeeper: startZooKeeper, peer.Etcd: startEtcd, peer.Redis: startRedis, peer.Masters: startMasters,
		peer.PostgreSQL: startPostgreSQL, peer.MariaDB: startMariaDB,
	}
	if starts[name] == nil {
		return nil, fmt.Errorf("no service %q", name)
	}
	s, err := starts[name](ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// await calls ready until it returns no error, or ctx ends.
func await(ctx context.Context, ready func() error) error {
	for {
		err := ready()
		if err == nil || errors.Is(err, errDead) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
