package main

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
)

// fragment release
// release says which locks a release of the program holds while it works.
type release int

const (
	holdsOld  release = iota // the lock on Redis
	holdsBoth                // both
	holdsNew                 // the lock on ZooKeeper
)

// newLock returns the lock of a release.
func newLock(r release, zk *framework.Client, rdb *redislock.Client) (recipes.Locker, error) {
	if r == holdsNew {
		return mutex.New(zk, "/docent-examples/migrate")
	}
	old, err := redislock.New(rdb, "docent-examples:migrate")
	if err != nil || r == holdsOld {
		return old, err
	}
	changed, err := mutex.New(zk, "/docent-examples/migrate")
	if err != nil {
		return nil, err
	}
	return multilock.Combine(old, changed) // in this order in all programs, also on the way back
}

// tokensOf returns what a program sends to the resource with each write.
func tokensOf(r release, hold *recipes.Hold) tokens {
	switch all := hold.Tokens(); r {
	case holdsOld:
		return tokens{redis: all[0]}
	case holdsNew:
		return tokens{zookeeper: all[0]}
	default:
		return tokens{redis: all[0], zookeeper: all[1]}
	}
}

// end

func (r release) String() string {
	return [...]string{"the lock on Redis", "both locks", "the lock on ZooKeeper"}[r]
}

// services are the addresses of the services that have locks.
type services struct{ zookeeper, redis string }

// clients are those of one program: of the services that its release uses.
type clients struct {
	zk    *framework.Client
	redis redis.UniversalClient
	locks *redislock.Client
}

// open connects to what a release needs. The prefix is "", so that the lock excludes those of redsync and
// bsm/redislock with that key, too.
func (s services) open(r release, opts ...redislock.Option) (c clients, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if r != holdsOld {
		if c.zk, err = framework.New(s.zookeeper); err != nil {
			return c, err
		}
	}
	if r != holdsNew {
		c.redis = redis.NewClient(&redis.Options{Addr: s.redis, ContextTimeoutEnabled: true})
		if c.locks, err = redislock.NewClient(c.redis, append(opts, redislock.WithPrefix(""))...); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c clients) close() (err error) {
	if c.locks != nil {
		err = c.locks.Close()
	}
	if c.redis != nil {
		err = errors.Join(err, c.redis.Close())
	}
	if c.zk != nil {
		err = errors.Join(err, c.zk.Close())
	}
	return err
}
