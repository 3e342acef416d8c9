package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
)

// peer is a lock of another library, as a Locker that tries only.
type peer func(ctx context.Context) (release func(context.Context) error, err error)

var errTriesOnly = errors.New("this lock only tries")

func (peer) Acquire(context.Context) (*recipes.Hold, error) { return nil, errTriesOnly }

func (p peer) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	until := time.Now().Add(time.Minute)
	release, err := p(ctx)
	if err != nil {
		return nil, err
	}
	return recipes.HoldForeign(recipes.ForeignHold{
		Name: "peer", Until: func() time.Time { return until }, Release: release,
	})
}

const key = "docent-examples:migrate"

func ofRedsync(rdb *redis.Client) peer {
	return func(ctx context.Context) (func(context.Context) error, error) {
		m := redsync.New(goredis.NewPool(rdb)).NewMutex(key, redsync.WithExpiry(time.Minute))
		var taken *redsync.ErrTaken
		switch err := m.TryLockContext(ctx); {
		case errors.As(err, &taken):
			return nil, errors.Join(recipes.ErrNotAcquired, err)
		case err != nil:
			return nil, err
		}
		return func(ctx context.Context) error { _, err := m.UnlockContext(ctx); return err }, nil
	}
}

func ofBsm(rdb *redis.Client) peer {
	return func(ctx context.Context) (func(context.Context) error, error) {
		l, err := bsm.Obtain(ctx, rdb, key, time.Minute, nil)
		switch {
		case errors.Is(err, bsm.ErrNotObtained):
			return nil, errors.Join(recipes.ErrNotAcquired, err)
		case err != nil:
			return nil, err
		}
		return l.Release, nil
	}
}

// kinds are what the table of the page calls locks and releases.
var kinds = []string{"redsync", "bsm/redislock", "old", "both", "new"}

// lockOf returns a lock of another program of a kind.
func lockOf(t *testing.T, s servers, kind string) recipes.Locker {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	switch kind {
	case "redsync":
		return ofRedsync(rdb)
	case "bsm/redislock":
		return ofBsm(rdb)
	case "old":
		return lockOfRelease(t, s, holdsOld)
	case "both":
		return lockOfRelease(t, s, holdsBoth)
	}
	return lockOfRelease(t, s, holdsNew)
}

// redsync on several servers acquires the keys of a majority. A hold of all keys excludes it.
func TestAllKeysExcludeEveryMajority(t *testing.T) {
	var pools []pool.Pool
	var locks []recipes.Locker
	var all []*miniredis.Miniredis
	for range 3 {
		s := newServers(t)
		rdb := redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
		t.Cleanup(func() { require.NoError(t, rdb.Close()) })
		all, pools = append(all, s.redis), append(pools, goredis.NewPool(rdb))
		locks = append(locks, lockOfRelease(t, s, holdsOld))
	}
	m := redsync.New(pools...).NewMutex(key, redsync.WithExpiry(time.Minute))
	old, err := multilock.Combine(locks...)
	require.NoError(t, err)

	hold := acquire(t, old)
	require.Error(t, m.TryLock())
	require.NoError(t, hold.Release())

	for i := range all { // a majority of two
		require.NoError(t, all[i].Set(key, "out of reach"))
		require.NoError(t, m.TryLock())
		all[i].Del(key)
		_, err = old.TryAcquire(bounded(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		_, err = m.Unlock()
		require.NoError(t, err)
	}
	require.NoError(t, acquire(t, old).Release())
}
