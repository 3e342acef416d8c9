package porting

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// fragment redis
// Redis has the operations that the lock needs of your client.
type Redis interface {
	// SetNX sends SET key value NX PX ttl once. A second request would find the key of the first
	// one and wait for it.
	SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error)
	// DelIf runs the script that deletes a key if it has this value.
	DelIf(ctx context.Context, key, value string) error
}

// redisLock is a recipes.Locker.
type redisLock struct {
	r   Redis
	key string
	ttl time.Duration
}

func (l redisLock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	for {
		hold, err := l.TryAcquire(ctx)
		if !errors.Is(err, recipes.ErrNotAcquired) {
			return hold, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

func (l redisLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	owner := rand.Text()
	until := time.Now().Add(l.ttl) // earlier than in Redis
	release := func(ctx context.Context) error { return l.r.DelIf(ctx, l.key, owner) }
	switch got, err := l.r.SetNX(ctx, l.key, owner, l.ttl); {
	case err != nil: // it may have been set; if it cannot be deleted, it expires
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return nil, errors.Join(err, release(left))
	case !got:
		return nil, recipes.ErrNotAcquired
	}
	return recipes.HoldForeign(recipes.ForeignHold{
		Name: "redis " + l.key, Until: func() time.Time { return until }, Release: release,
	})
}

// end

func holdBoth(ctx context.Context, client *framework.Client, r Redis, do job) error {
	mu, err := mutex.New(client, "/locks/orders")
	if err != nil {
		return err
	}
	both, err := multilock.Combine(redisLock{r, "orders", 30 * time.Second}, mu) // the old one first
	if err != nil {
		return err
	}
	return both.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return do(ctx) // the context ends when either lock does
	})
}

func TestKeyOfASetWithoutAnAnswerIsDeleted(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r := &keys{owners: map[string]string{}, set: cancel}
	err := holdBoth(ctx, client, r, say("working"))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.empty())
}

func Example_redis() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		r := &keys{owners: map[string]string{}}
		if got, err := r.SetNX(ctx, "orders", "an old process", time.Minute); err != nil || !got {
			return errors.Join(err, errors.New("not set"))
		}
		done := make(chan error, 1)
		go func() {
			done <- holdBoth(ctx, client, r, func(context.Context) error {
				fmt.Println("the new process works")
				return nil
			})
		}()
		select {
		case err := <-done:
			return errors.Join(err, errors.New("it did not wait for the old process"))
		case <-time.After(200 * time.Millisecond):
		}
		fmt.Println("the old process leaves")
		return errors.Join(r.DelIf(ctx, "orders", "an old process"), <-done, r.empty())
	})
	// Output:
	// the old process leaves
	// the new process works
}

// keys is a Redis in which no key expires.
type keys struct {
	mu     sync.Mutex
	owners map[string]string
	set    func() // called before SetNX returns; may be nil
}

func (k *keys) SetNX(ctx context.Context, key, value string, _ time.Duration) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.owners[key] != "" {
		return false, nil
	}
	k.owners[key] = value
	if k.set != nil {
		k.set()
	}
	return true, ctx.Err()
}

func (k *keys) DelIf(ctx context.Context, key, value string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.owners[key] == value {
		delete(k.owners, key)
	}
	return nil
}

func (k *keys) empty() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.owners) > 0 {
		return fmt.Errorf("left behind: %v", k.owners)
	}
	return nil
}
