package peer

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

// docent is the mutex of docent on ZooKeeper.
func docent(ctx context.Context, c Config) (func(string) (Lock, error), error) {
	client, err := framework.New(strings.Join(c.Servers, ","), framework.WithSessionTimeout(c.Lease))
	if err != nil {
		return nil, err
	}
	if err := client.WaitConnected(ctx); err != nil {
		return nil, err
	}
	return func(name string) (Lock, error) {
		lock, err := mutex.New(client, "/"+name)
		return locker{lock, func(ctx context.Context, h *recipes.Hold) error {
			return guarded(ctx, h, "/data-"+name)
		}}, err
	}, nil
}

// guarded writes a node, which it makes if there is none.
func guarded(ctx context.Context, h *recipes.Hold, path string) error {
	_, err := h.Guard(ctx, framework.SetOp(path, nil, -1))
	if errors.Is(err, zk.ErrNoNode) && h.Err() == nil {
		_, err = h.Guard(ctx, framework.CreateOp(path, nil))
	}
	return err
}

// locker is a lock of docent, on any service. Without write it cannot write there.
type locker struct {
	recipes.Locker
	write func(ctx context.Context, h *recipes.Hold) error
}

func (l locker) Acquire(ctx context.Context) (Held, error) {
	h, err := l.Locker.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if l.write == nil {
		return hold{h}, nil
	}
	return guardedHold{hold{h}, l.write}, nil
}

type hold struct{ *recipes.Hold }

func (h hold) Look(context.Context) State    { return stateOf(h.Err() == nil) }
func (h hold) Release(context.Context) error { return h.Hold.Release() }

type guardedHold struct {
	hold
	write func(ctx context.Context, h *recipes.Hold) error
}

func (h guardedHold) Write(ctx context.Context) error { return h.write(ctx, h.Hold) }
