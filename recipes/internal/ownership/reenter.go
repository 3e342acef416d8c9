package ownership

import "context"

// holdKey is the key of a hold in a context: one for each lock of each client.
type holdKey struct{ lock any }

// Current returns the hold that ctx carries for the lock with this key, if there is one and it is
// valid.
func Current(ctx context.Context, key any) (*Hold, bool) {
	h, ok := ctx.Value(holdKey{key}).(*Hold)
	if !ok || h.Err() != nil {
		return nil, false
	}
	return h, true
}

// Reenter returns another hold of the lock with this key, if ctx carries one that is valid.
func Reenter(ctx context.Context, key any) (*Hold, bool) {
	h, ok := Current(ctx, key)
	if !ok {
		return nil, false
	}
	other, ok := h.owned.enter(h)
	if ok {
		for _, l := range h.owned.locks() {
			if l.Key == key {
				other.single = &l
			}
		}
	}
	return other, ok
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

// newCarrier returns a context that carries h as the hold of each lock, and of all together.
func newCarrier(ctx context.Context, h *Hold, all any, locks []Lock) carrier {
	keys := map[any]struct{}{holdKey{all}: {}}
	for _, l := range locks {
		keys[holdKey{l.Key}] = struct{}{}
	}
	return carrier{ctx, h, keys}
}

func (c carrier) Value(key any) any {
	if _, ok := key.(holdKey); ok {
		if _, carried := c.keys[key]; carried {
			return c.hold
		}
	}
	return c.Context.Value(key)
}
