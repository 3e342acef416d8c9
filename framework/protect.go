package framework

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Whatever we may have created is either handed to the caller or deleted. A create whose answer is lost is looked for by the GUID in
// its name, after a Sync; what is found then is all that will ever be. In the same session, because a server that still has the
// request from before has lost the session to the one we are connected to; in the next one, because the servers have ended the
// session of the request, or it has run out. Whoever leaves without knowing has the janitor look for it.

// custody says who answers for what the attempts of one call may create: the call while it runs and if it succeeds, and the
// janitor once it has failed. The janitor waits for the answers that nobody waited for.
type custody struct {
	sweep func(s *session)

	mu      sync.Mutex
	waiting int // answers that nobody waited for, less those that have come
	failed  bool
	doubted *session // where what became of an attempt is not known
}

// left notes that nobody waits for an answer any more.
func (c *custody) left() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
}

// landed notes that such an answer has come, perhaps before left has been told.
func (c *custody) landed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	c.settle()
}

// fail is the end of a call that does not know what it has created.
func (c *custody) fail(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed, c.doubted = true, s
	c.settle()
}

func (c *custody) settle() {
	if c.failed && c.waiting == 0 {
		c.sweep(c.doubted)
	}
}

// protect makes attempts at something that creates nodes, all of them or none. If one of the nodes is protected, an attempt that may
// have been applied is followed by a search; adopt turns what was found into the result.
func protect[T any](ctx context.Context, o ops, c call, nodes []creation,
	attempt func(ctx context.Context, s *session, late func(T, error)) (T, error),
	adopt func(found []string) T,
) (T, error) {
	guarded := slices.ContainsFunc(nodes, func(n creation) bool { return n.guid != "" })
	if !guarded {
		return run(ctx, o, c, func(ctx context.Context, s *session) (T, error) { return attempt(ctx, s, nil) })
	}
	c.may = searchable
	held := &custody{sweep: func(s *session) { o.sweep(nodes, s) }}
	late := func(T, error) { held.landed() }
	var doubted *session // where what became of an attempt is not known
	result, err := run(ctx, o, c, func(ctx context.Context, s *session) (T, error) {
		if doubted != nil {
			found, err := s.findAll(ctx, nodes, doubted)
			if err != nil || found != nil {
				return adopt(found), err
			}
		}
		doubted = nil
		result, err := attempt(ctx, s, late)
		if err != nil && OutcomeOf(err) == Unknown {
			doubted = s
		}
		if abandoned(err) {
			held.left()
		}
		return result, err
	})
	if err != nil && OutcomeOf(err) == Unknown {
		held.fail(doubted)
	}
	return result, err
}

func abandoned(err error) bool {
	var a *attemptError
	return errors.As(err, &a) && a.abandoned
}

// findAll looks for protected nodes of one transaction: where one is, all are. Nodes without protection have the path they were
// asked for, or none if the servers appended a number to it. Nil means that there are none, and that none will come of doubted.
func (s *session) findAll(ctx context.Context, nodes []creation, doubted *session) ([]string, error) {
	if err := s.outlive(ctx, doubted); err != nil {
		return nil, err
	}
	all := make([]string, len(nodes))
	found := false
	lists := map[string][]string{} // of each parent, which may have many of them
	for i, n := range nodes {
		if n.guid == "" {
			if !n.sequential() {
				all[i] = n.full
			}
			continue
		}
		full, err := s.find(ctx, n, lists)
		if err != nil {
			return nil, err
		}
		all[i] = full
		found = found || full != ""
	}
	if !found {
		return nil, nil
	}
	return all, nil
}

// outlive waits until nothing more can come of what was asked for in another session.
func (s *session) outlive(ctx context.Context, other *session) error {
	if other == nil || other == s {
		return nil
	}
	select {
	case <-other.retired:
		return nil
	case <-s.done:
		return notApplied(s.reason())
	case <-ctx.Done():
		return notApplied(ctxerr.Of(ctx))
	}
}

// find looks for a protected node; "" means that there is none. An ephemeral node that belongs to another session is not ours.
func (s *session) find(ctx context.Context, n creation, lists map[string][]string) (string, error) {
	parent := znode.Parent(n.full)
	children, known := lists[parent]
	if !known {
		var err error
		if children, err = s.list(ctx, parent); err != nil {
			return "", err
		}
		lists[parent] = children
	}
	i := slices.IndexFunc(children, func(name string) bool { return znode.IsProtectedBy(name, n.guid) })
	if i < 0 {
		return "", nil
	}
	full := znode.Join(parent, "/"+children[i])
	if n.ephemeral() {
		return s.mine(ctx, full)
	}
	return full, nil
}

// list is all that will ever have become of what was asked for below parent until now.
func (s *session) list(ctx context.Context, parent string) ([]string, error) {
	if err := s.sync(ctx, parent); err != nil {
		return nil, err
	}
	r, err := s.read(ctx, watchKey{parent, watchChildren})
	if isNoNode(err) {
		return nil, nil
	}
	return r.children, err
}

// mine is full if that node belongs to the session, otherwise "".
func (s *session) mine(ctx context.Context, full string) (string, error) {
	r, err := s.read(ctx, watchKey{full, watchExists})
	if err != nil || r.stat == nil || r.stat.EphemeralOwner != s.id() {
		return "", err
	}
	return full, nil
}

// sweep deletes, in the background, what there is of a transaction's protected nodes that nobody owns, and that may have been created in the
// session doubted.
func (o ops) sweep(nodes []creation, doubted *session) {
	first := nodes[slices.IndexFunc(nodes, func(n creation) bool { return n.guid != "" })].full
	c, where := call{name: "sweep", path: first, full: first, may: repeatable}, o
	if slices.ContainsFunc(nodes, func(n creation) bool { return n.guid != "" && !n.ephemeral() }) {
		where.bound = nil // such a node outlives the session
	}
	where.unheard = true
	where.errand(c, func(ctx context.Context, s *session) error {
		found, err := s.findAll(ctx, nodes, doubted)
		if err != nil {
			return err
		}
		var owned []string
		for i, full := range found {
			if full != "" && nodes[i].guid != "" {
				owned = append(owned, full)
			}
		}
		if len(owned) == 0 {
			return nil
		}
		if err := (&deletion{left: slices.Clone(owned), doubtful: true}).attempt(ctx, s); err != nil {
			return err
		}
		for _, full := range owned {
			o.Logger().Info("deleted a node that nobody owned", zap.String("path", full), zap.Int64("session", s.id()))
		}
		return nil
	})
}

// errand does something in the background until it has succeeded, cannot succeed, or the client or the session it is bound to is
// over. The result is sent once, to a channel that has room for it.
func (o ops) errand(c call, step func(context.Context, *session) error) <-chan error {
	result := make(chan error, 1)
	background := o
	background.patient = true
	spawned := o.core.spawn(func() {
		o.Metrics().Add(JanitorBacklog, 1, Labels{})
		_, err := run(context.Background(), background, c, func(ctx context.Context, s *session) (nothing, error) {
			return nothing{}, step(ctx, s)
		})
		o.gaveUp(c, err)
		o.Metrics().Add(JanitorBacklog, -1, Labels{})
		result <- err
	})
	if !spawned {
		result <- c.failed(NotApplied, ErrClosed)
	}
	return result
}

// gaveUp tells that there may be something left for good, unless err says that there is not. Nobody else may be told.
func (o ops) gaveUp(c call, err error) {
	if err != nil && !isNoNode(err) && !o.ended() {
		o.Logger().Warn("gave up", zap.String("op", c.name), zap.String("path", c.full), zap.Error(err))
	}
}

// ended reports whether the operations are bound to a session that is over, and whose ephemeral nodes go without our help.
func (o ops) ended() bool { return o.bound != nil && o.bound.reason() != nil }

// tireless is the policy of errands.
func tireless(attempt int, _ time.Duration) (time.Duration, bool) {
	return min(2*time.Second, 50*time.Millisecond<<min(attempt, 10)), true
}
