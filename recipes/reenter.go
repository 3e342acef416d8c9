package recipes

import (
	"context"

	"github.com/docent-zk/docent/framework"
)

// holdKey is the key of a hold in a context: one for each lock of each client.
type holdKey struct{ lock any }

// Inside returns the hold that ctx carries for the lock with this key, if there is one and it is valid. It is for recipes.
func Inside(ctx context.Context, key any) (*Hold, bool) {
	h, ok := ctx.Value(holdKey{key}).(*Hold)
	if !ok || h.Err() != nil {
		return nil, false
	}
	return h, true
}

// Reenter returns another level of the ownership that ctx carries for the lock with this key, if there is one and it is valid. It is
// for recipes.
func Reenter(ctx context.Context, key any) (*Hold, bool) {
	h, ok := Inside(ctx, key)
	if !ok {
		return nil, false
	}
	level, ok := h.tenure.enter(h)
	if !ok {
		return nil, false
	}
	for _, l := range h.tenure.locks() {
		if l.Key == key {
			level.focus = &l
		}
	}
	return level, true
}

// SessionOf is the session of a hold that was acquired, nil in the zero value. It is for recipes.
func SessionOf(h *Hold) *framework.Session {
	if h == nil || h.tenure == nil {
		return nil
	}
	return h.tenure.session()
}

func (n *nodes) carry(ctx context.Context, h *Hold) context.Context {
	if len(n.Locks) == 1 && n.Key == nil {
		return context.WithValue(ctx, holdKey{n.Locks[0].Key}, h)
	}
	return newCarrier(ctx, h, n.Key, n.Locks)
}

// carrier carries one hold of many locks.
type carrier struct {
	context.Context
	hold *Hold
	keys map[any]struct{} // holdKeys
}

// newCarrier carries h as the hold of each lock, and of all together.
func newCarrier(ctx context.Context, h *Hold, all any, locks []Lock) carrier {
	keys := map[any]struct{}{holdKey{all}: {}}
	for _, l := range locks {
		keys[holdKey{l.Key}] = struct{}{}
	}
	return carrier{ctx, h, keys}
}

func (c carrier) Value(key any) any {
	if _, ok := key.(holdKey); ok {
		if _, ours := c.keys[key]; ours {
			return c.hold
		}
	}
	return c.Context.Value(key)
}
