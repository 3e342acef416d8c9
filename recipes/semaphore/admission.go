package semaphore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/participants"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// admission grants n permits. As in Curator, only the first waiter in locks counts the leases and
// creates more. The exception is a transaction that creates leases and shows that the queue was
// empty and that they were not too many.
type admission struct {
	*Semaphore
	n int
}

// Ready returns queue.ErrBusy if there are too few permits.
func (a *admission) Ready(ctx context.Context) error {
	s, err := a.client.Session(ctx)
	if err != nil {
		return err
	}
	r, err := a.limit.read(ctx, s, a.Semaphore)
	if err != nil {
		return err
	}
	leases, _, err := a.client.Children(ctx, a.leases.Path())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		err = nil
	case err != nil:
		return err
	}
	if !a.fits(leases, r) && a.limit.shared {
		a.limit.forget() // it may have been raised: only a waiter has a watch on it
		r, err = a.limit.read(ctx, s, a.Semaphore)
	}
	if err == nil && !a.fits(leases, r) {
		err = full(leases, r)
	}
	return err
}

// full returns an error that says how many permits are taken.
func full(leases []string, r reading) error {
	return queue.Busy(fmt.Sprintf("%d of %d permits are taken", locknode.Count(leases, leaseMarker), r.permits))
}

// fits reports whether the limit allows n more leases.
func (a *admission) fits(leases []string, r reading) bool {
	return locknode.Count(leases, leaseMarker)+a.n <= r.permits
}

// TryFast creates the permits in one transaction, if there are no waiters.
func (a *admission) TryFast(ctx context.Context, s *framework.Session) (*ownership.Hold, error) {
	for {
		r, err := a.limit.read(ctx, s, a.Semaphore)
		if err != nil {
			return nil, err
		}
		if a.n > r.permits || a.contended.Load() || a.leasesDir.ReadOnly() || a.locksDir.ReadOnly() {
			return nil, queue.ErrQueueNeeded
		}
		hold, err := a.tryDirect(ctx, s, r)
		switch {
		case errors.Is(err, enqueue.ErrRetry):
			continue
		case errors.Is(err, queue.ErrBusy):
			a.contended.Store(true)
			return nil, queue.ErrQueueNeeded
		}
		return hold, err
	}
}

// tryDirect is one attempt of Direct, at the limit r.
func (a *admission) tryDirect(ctx context.Context, s *framework.Session, r reading) (*ownership.Hold, error) {
	var seen listing
	if a.slots {
		var err error
		if seen, err = a.list(ctx, s); err != nil {
			return nil, err
		}
		if !seen.checkable() {
			return nil, queue.ErrBusy
		}
	}
	t, err := a.take(ctx, s, r, seen, nil, a.leasesDir, a.locksDir)
	if err != nil {
		return nil, err
	}
	leases, locks := t.Count[0], t.Count[1]
	if leases == nil || locks == nil || int(leases.NumChildren) > r.permits || locks.NumChildren > 0 {
		enqueue.DeleteNodes(ctx, s, t.Nodes...)
		return nil, queue.ErrBusy
	}
	return a.hold(ctx, s, t, r, seen, nil)
}

// list reads the leases.
func (a *admission) list(ctx context.Context, s *framework.Session) (listing, error) {
	names, stat, err := s.Children(ctx, a.leases.Path())
	if errors.Is(err, zk.ErrNoNode) {
		return listing{}, cmp.Or(a.leasesDir.Ensure(ctx, s), enqueue.ErrRetry)
	}
	return listing{names: names, stat: stat}, err
}

// Admit waits at the front of the queue until there are enough permits. It creates the permits and
// deletes the waiter's node in one transaction.
func (a *admission) Admit(ctx context.Context, turn *queue.FrontWaiter) (*ownership.Hold, error) {
	c := frontWaiter{admission: a, turn: turn}
	for {
		hold, err := c.attempt(ctx)
		if errors.Is(err, queue.ErrBusy) && turn.MayWait() {
			c.waited, c.busy = true, err
			err = cmp.Or(turn.Wait(ctx, c.changed, c.limit.watch), enqueue.ErrRetry)
		} else if errors.Is(err, enqueue.ErrRetry) {
			c.limit = limitView{}
		} else {
			err = turn.PauseForRetry(ctx, err)
		}
		if !errors.Is(err, enqueue.ErrRetry) {
			a.contended.Store(c.waited || c.tooFull)
			return hold, c.ended(ctx, err)
		}
	}
}

// frontWaiter is an acquire with its node at the front of the queue.
type frontWaiter struct {
	*admission
	turn    *queue.FrontWaiter
	limit   limitView
	changed *framework.Watch // fires when permits may be free
	sync    bool             // the next list of the leases begins with a sync
	waited  bool
	busy    error // why it has waited
	warned  bool
	tooFull bool // the children that are no leases leave no room: Direct, which counts all, would fail
}

// attempt creates the permits, or returns queue.ErrBusy if there are too few.
func (c *frontWaiter) attempt(ctx context.Context) (*ownership.Hold, error) {
	leases, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.limit.refresh(ctx, c.admission, c.turn.Session()); err != nil {
		return nil, err
	}
	if !c.fits(leases.names, c.limit.reading) {
		c.warnIfTooMany()
		return nil, full(leases.names, c.limit.reading)
	}
	c.tooFull = len(leases.names)+c.n > c.limit.permits
	hold, err := c.exchange(ctx, c.turn, c.limit.reading, leases)
	c.sync = c.sync || errors.Is(err, enqueue.ErrRetry)
	return hold, err
}

// warnIfTooMany warns, once, when the acquire begins to wait for a higher limit: until then nothing
// behind it is let in either.
func (c *frontWaiter) warnIfTooMany() {
	if c.warned || c.n <= c.limit.permits || !c.turn.MayWait() {
		return
	}
	c.warned = true
	c.client.Logger().Named(c.lock.Recipe).Warn(
		"more permits requested than the limit allows: this acquire and those behind it wait for a higher limit",
		zap.String("path", c.path), zap.Int("permits", c.n), zap.Int("limit", c.limit.permits),
	)
}

// ended adds to an error that it ended a wait for other clients, if there was such a wait.
func (c *frontWaiter) ended(ctx context.Context, err error) error {
	if c.waited {
		return queue.WaitError(ctx, c.client, c.busy, err)
	}
	return err
}

// look reads the leases with a watch. Where the transaction could not prove that nothing was added
// since, it reads them after a sync.
func (c *frontWaiter) look(ctx context.Context) (listing, error) {
	s, dir := c.turn.Session(), c.leases.Path()
	seen := listing{synced: c.sync || c.leasesDir.ReadOnly()}
	_, err := queue.RetryInSession(ctx, s, func(ctx context.Context) (_ struct{}, err error) {
		if seen.synced {
			err = s.Sync(ctx, dir)
		}
		if err == nil {
			seen.names, seen.stat, c.changed, err = s.ChildrenW(ctx, dir)
		}
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return listing{}, cmp.Or(c.leasesDir.Ensure(ctx, s), enqueue.ErrRetry) // for a watch
	case err == nil && !seen.synced && !seen.checkable():
		c.sync, err = true, enqueue.ErrRetry
	}
	return seen, err
}

// limitView is what a waiter knows of the limit.
type limitView struct {
	reading
	watch *framework.Watch // nil: nothing is known, or the limit is fixed
}

// refresh reads the limit unless it is known and its watch has not fired.
func (v *limitView) refresh(ctx context.Context, a *admission, s *framework.Session) error {
	if v.watch != nil && v.watch.Event() == 0 {
		return nil
	}
	_, err := queue.RetryInSession(ctx, s, func(ctx context.Context) (_ struct{}, err error) {
		v.reading, v.watch, err = a.limit.watch(ctx, s, a.Semaphore)
		return struct{}{}, err
	})
	return err
}

// exchange creates the permits and deletes the waiter's node, in one transaction.
func (a *admission) exchange(
	ctx context.Context, turn *queue.FrontWaiter, r reading, seen listing,
) (*ownership.Hold, error) {
	t, err := a.take(ctx, turn.Session(), r, seen, []framework.Op{turn.DeleteOp()}, a.leasesDir)
	switch {
	case errors.Is(err, enqueue.ErrRetry):
		return nil, cmp.Or(turn.Reread(ctx), err) // a Revoke may have changed the waiter's node
	case err != nil:
		return nil, err
	}
	return a.hold(ctx, turn.Session(), t, r, seen, turn.Data())
}

// take runs the transaction that creates the leases and applies the operations in with. It fails
// with enqueue.ErrRetry if the limit is not r any more, or if leases were added to those in seen.
func (a *admission) take(
	ctx context.Context, s *framework.Session, r reading, seen listing, with []framework.Op, count ...*enqueue.Dir,
) (enqueue.Created, error) {
	names, err := a.names(r, seen)
	if err != nil {
		return enqueue.Created{}, err
	}
	limit, same := a.limit.check(r), seen.check(a.leases.Path())
	e := enqueue.Counted{Create: enqueue.Create{Before: slices.Concat(limit, same, with)}, Dirs: count}
	for _, name := range names {
		lease := enqueue.Node{
			Dir: a.leases.Path(), RequestedName: name, Data: a.data, Options: enqueue.LockNodeOptions(),
		}
		e.Nodes = append(e.Nodes, lease)
	}
	done, err := e.Do(ctx, s)
	var refused *enqueue.RefusedError
	switch {
	case !errors.As(err, &refused):
		return done, err
	case refused.Op < len(limit):
		a.limit.forget()
		return enqueue.Created{}, enqueue.ErrRetry
	case errors.Is(err, zk.ErrBadVersion), refused.Op < len(limit)+len(same):
		return enqueue.Created{}, enqueue.ErrRetry
	case errors.Is(err, zk.ErrNoNode):
		return enqueue.Created{}, enqueue.ErrOwnNodeDeleted // the waiter's node
	}
	return enqueue.Created{}, err
}

// names returns the names of n leases. The name of a lease contains its slot, so that both end at
// once.
func (a *admission) names(r reading, seen listing) ([]string, error) {
	if !a.slots {
		return slices.Repeat([]string{leaseMarker}, a.n), nil
	}
	taken := map[int]bool{}
	for _, name := range seen.names {
		if slot, ok := slotOf(name); ok {
			taken[slot] = true
		}
	}
	var names []string
	for slot := 0; slot < r.permits && len(names) < a.n; slot++ {
		if !taken[slot] {
			names = append(names, slotMarker+strconv.Itoa(slot)+"-"+leaseMarker)
		}
	}
	if len(names) < a.n {
		return nil, queue.ErrBusy
	}
	return names, nil
}

// hold returns a hold of permits that a transaction created, if the limit was r and the leases were
// those in seen. data is what a Revoke may have written to the waiter's node.
func (a *admission) hold(
	ctx context.Context, s *framework.Session, t enqueue.Created, r reading, seen listing, data []byte,
) (*ownership.Hold, error) {
	held := false
	defer func() {
		if !held {
			enqueue.DeleteNodes(ctx, s, t.Nodes...)
		}
	}()
	token := t.Czxid
	lifetime, err := queue.ConfirmedLifetime(ctx, s, func(ctx context.Context, suspended bool) error {
		err := a.limit.confirm(ctx, s, r, t.Count[0])
		if err == nil {
			err = a.confirm(ctx, s, seen, t.Count[0])
		}
		if err == nil && (token == 0 || suspended) {
			token, err = queue.Confirm(ctx, s, t.Nodes[0])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	g := ownership.Grant{
		Session:  s,
		Lifetime: lifetime,
		Recipe:   a.lock.Recipe,
		Log:      a.lock.Log,
		Locks:    []ownership.Lock{{Path: a.path, Key: a.leases.Key(), Token: token}},
	}
	for _, node := range t.Nodes {
		g.Nodes = append(g.Nodes, ownership.Node{Path: node})
	}
	g.Nodes[0].Data = data
	h := ownership.New(g)
	held = true
	return h, nil
}

// oldestHolder returns the holder of the oldest permit.
func (s *Semaphore) oldestHolder(ctx context.Context) (recipes.Participant, error) {
	oldest, err := participants.First(ctx, s.leases, leaseMarker)
	if err != nil {
		return recipes.Participant{}, err
	}
	return permit(oldest), nil
}

// slotMarker is in front of the number of a slot in the name of a lease.
const slotMarker = "slot-"

// slotOf returns the slot in the name of a lease.
func slotOf(name string) (slot int, ok bool) {
	_, rest, _ := strings.Cut(name, "-"+slotMarker)
	digits, _, ok := strings.Cut(rest, "-"+leaseMarker)
	slot, err := strconv.Atoi(digits)
	return slot, ok && err == nil && slot >= 0
}

// Slots returns the numbers of a hold's permits, in ascending order. They are from 0 to less than
// the limit. While the hold is valid no other hold has them. Slots returns nil for a hold that is
// not of a semaphore with WithSlots.
func Slots(h *recipes.Hold) []int {
	var slots []int
	for _, node := range h.Paths() {
		if slot, ok := slotOf(path.Base(node)); ok {
			slots = append(slots, slot)
		}
	}
	return slots
}
