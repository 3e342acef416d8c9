package peer

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/contrib/redislock"
)

func connectRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

// docentOnRedis is contrib/redislock.
func docentOnRedis(_ context.Context, c Config) (func(string) (Lock, error), error) {
	client, err := redislock.NewClient(connectRedis(c.Servers[0]), redislock.WithTTL(c.Lease))
	if err != nil {
		return nil, err
	}
	return func(name string) (Lock, error) {
		lock, err := redislock.New(client, name)
		return locker{Locker: lock}, err
	}, nil
}

// docentRedlock is the Redlock of contrib/redislock.
func docentRedlock(_ context.Context, c Config) (func(string) (Lock, error), error) {
	var servers []redis.UniversalClient
	for _, addr := range c.Servers {
		servers = append(servers, connectRedis(addr))
	}
	locks, err := redislock.NewRedlock(servers, redislock.WithTTL(c.Lease))
	if err != nil {
		return nil, err
	}
	return func(name string) (Lock, error) {
		lock, err := locks.New(name)
		return locker{Locker: lock}, err
	}, nil
}

// redsyncMutex is redsync, on one master or on several. It has its own pause between tries, and tries
// until it succeeds.
func redsyncMutex(_ context.Context, c Config) (func(string) (Lock, error), error) {
	var pools []redsyncredis.Pool
	for _, addr := range c.Servers {
		pools = append(pools, goredis.NewPool(connectRedis(addr)))
	}
	rs := redsync.New(pools...)
	return func(name string) (Lock, error) { return redsyncLock{rs, name, c.Lease}, nil }, nil
}

type redsyncLock struct {
	rs    *redsync.Redsync
	name  string
	lease time.Duration
}

func (l redsyncLock) Acquire(ctx context.Context) (Held, error) {
	m := l.rs.NewMutex(l.name, redsync.WithExpiry(l.lease), redsync.WithTries(math.MaxInt))
	return redsyncHeld{m}, m.LockContext(ctx)
}

type redsyncHeld struct{ *redsync.Mutex }

func (redsyncHeld) Token() int64                 { return 0 }
func (h redsyncHeld) Look(context.Context) State { return stateOf(time.Now().Before(h.Until())) }
func (h redsyncHeld) Release(ctx context.Context) error {
	_, err := h.UnlockContext(ctx)
	return err
}

// bsmPause is the pause between the tries of bsm/redislock, which has no default.
const bsmPause = 100 * time.Millisecond

// bsmLock is bsm/redislock.
func bsmLock(_ context.Context, c Config) (func(string) (Lock, error), error) {
	client := bsm.New(connectRedis(c.Servers[0]))
	return func(name string) (Lock, error) { return bsmNamed{client, name, c.Lease}, nil }, nil
}

type bsmNamed struct {
	client *bsm.Client
	name   string
	lease  time.Duration
}

// Acquire repeats Obtain, which gives up after the time to live unless the context has a deadline.
func (l bsmNamed) Acquire(ctx context.Context) (held Held, err error) {
	err = retry(ctx, 0, func() (bool, error) {
		lock, err := l.client.Obtain(ctx, l.name, l.lease,
			&bsm.Options{RetryStrategy: bsm.LinearBackoff(bsmPause)})
		if errors.Is(err, bsm.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return false, nil
		}
		held = bsmHeld{lock}
		return true, err
	})
	return held, err
}

type bsmHeld struct{ *bsm.Lock }

func (bsmHeld) Token() int64 { return 0 }

// Look asks the server, because the library tells nothing else. A program that gets no answer stops.
func (h bsmHeld) Look(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	left, err := h.TTL(ctx)
	return stateOf(err == nil && left > 0)
}

// byHand is a lock that is built by hand on a client of Redis.
type byHand struct {
	*redis.Client
	name  string
	lease time.Duration
	ahead time.Duration
}

func handmade(lock func(byHand) Lock) Program {
	return func(_ context.Context, c Config) (func(string) (Lock, error), error) {
		client := connectRedis(c.Servers[0])
		return func(name string) (Lock, error) { return lock(byHand{client, name, c.Lease, c.Ahead}), nil }, nil
	}
}

// handPause is the pause between the tries of the locks that are built by hand.
const handPause = 10 * time.Millisecond

// unlock is the release of most recipes: it deletes the key, whatever it has.
func (l byHand) unlock(ctx context.Context) error { return l.Del(ctx, l.name).Err() }

// getset is the lock of the recipe with SETNX and GETSET: the value is the time at which the lock
// expires, by the clocks of the programs.
type getset struct{ byHand }

var setnxGetset = handmade(func(l byHand) Lock { return getset{l} })

func (l getset) Acquire(ctx context.Context) (Held, error) {
	err := retry(ctx, handPause, func() (bool, error) {
		won, err := l.SetNX(ctx, l.name, l.expiry(), 0).Result()
		if won || err != nil {
			return won, err
		}
		before, err := l.Get(ctx, l.name).Result()
		if err != nil || !l.past(before) {
			return false, ignoreNil(err)
		}
		before, err = l.Do(ctx, "GETSET", l.name, l.expiry()).Text()
		return err == nil && l.past(before), ignoreNil(err)
	})
	return blind{l.unlock}, err
}

func (l getset) now() time.Time { return time.Now().Add(l.ahead) }
func (l getset) expiry() int64  { return l.now().Add(l.lease).UnixMilli() }

func (l getset) past(value string) bool {
	ms, err := strconv.ParseInt(value, 10, 64)
	return err == nil && ms < l.now().UnixMilli()
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// expire is the lock of the recipe with SETNX and then EXPIRE, two commands.
type expire struct{ byHand }

var setnxExpire = handmade(func(l byHand) Lock { return expire{l} })

func (l expire) Acquire(ctx context.Context) (Held, error) {
	err := retry(ctx, handPause, func() (bool, error) {
		won, err := l.SetNX(ctx, l.name, 1, 0).Result()
		if !won || err != nil {
			return false, err
		}
		return true, l.Expire(ctx, l.name, l.lease).Err()
	})
	return blind{l.unlock}, err
}
