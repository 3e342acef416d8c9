package framework

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// What a create may have left is handed to the caller or deleted. A create whose answer is lost is looked for by the GUID in its name, after a
// sync. What is found then is handed to the caller. That nothing is found lets the create be repeated, but it is no proof: see
// lateNodes. In the next session it is one, because the servers have ended the session of the request, or it has run out.

// custody is what the attempts of one call may create: of the call while it runs and if it succeeds, and to be deleted once it has
// failed. An attempt that the call has left without its answer is waited for.
type uncertainCreate struct {
	o     ops
	nodes []creation

	mu      sync.Mutex
	pending int        // answers that the call has not waited for, less those that have come
	lostIn  []*session // where an attempt was made whose answer was lost
	created []string   // by attempts whose answers came too late
	ended   bool
	owned   []string // by the caller, once the call is over
}

// left notes that the call does not wait for an answer any more.
func (c *uncertainCreate) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
}

// landed notes that such an answer has come, perhaps before left has been called, and which nodes were created.
func (c *uncertainCreate) answered(s *session, created []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending--
	switch {
	case err == nil:
		c.created = append(c.created, created...)
	case OutcomeOf(err) == Unknown:
		c.lostAnswerLocked(s)
	}
	c.cleanUpLocked()
}

// doubt notes that the answer to an attempt was lost.
func (c *uncertainCreate) lostAnswer(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lostAnswerLocked(s)
}

func (c *uncertainCreate) lostAnswerLocked(s *session) {
	if !slices.Contains(c.lostIn, s) {
		c.lostIn = append(c.lostIn, s)
	}
}

// end is the end of the call, which hands nodes to its caller.
func (c *uncertainCreate) end(owned []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.owned = true, owned
	c.cleanUpLocked()
}

func (c *uncertainCreate) cleanUpLocked() {
	if !c.ended || c.pending > 0 {
		return
	}
	for _, s := range c.lostIn {
		s.late.add(s, &lateNodes{o: c.o, nodes: c.nodes, owned: c.owned, since: conn.Now()})
	}
	c.created = slices.DeleteFunc(c.created, func(full string) bool { return full == "" || slices.Contains(c.owned, full) })
	if len(c.created) > 0 {
		first := c.created[0]
		c.o.runInBackground(call{name: "delete", path: first, full: first, class: repeatable}, (&deletion{left: c.created, uncertain: true}).attempt)
	}
}

// protect makes attempts at something that creates nodes, all of them or none. If one of the nodes is protected, an attempt that may
// have been applied is followed by a search; adopt turns what was found into the result, and paths what was created into the paths of the
// nodes.
func protect[T any](ctx context.Context, o ops, c call, nodes []creation,
	attempt func(ctx context.Context, s *session, late func(T, error)) (T, error),
	adopt func(found []string) T, paths func(T) []string,
) (T, error) {
	protected := slices.ContainsFunc(nodes, func(n creation) bool { return n.guid != "" })
	if !protected {
		return run(ctx, o, c, func(ctx context.Context, s *session) (T, error) { return attempt(ctx, s, nil) })
	}
	c.class = afterSearch
	creates := &uncertainCreate{o: o, nodes: nodes}
	var owned []string
	defer func() { creates.end(owned) }() // also if a retry policy or a logger panics, or ends the goroutine
	var uncertainIn *session              // where the answer to the last attempt was lost
	result, err := run(ctx, o, c, func(ctx context.Context, s *session) (T, error) {
		if uncertainIn != nil {
			found, err := s.findAll(ctx, nodes, uncertainIn)
			if err != nil || found != nil {
				return adopt(found), err
			}
		}
		uncertainIn = nil
		result, err := attempt(ctx, s, func(late T, err error) { creates.answered(s, paths(late), err) })
		switch {
		case abandoned(err):
			uncertainIn = s
			creates.abandon()
		case err != nil && OutcomeOf(err) == Unknown:
			uncertainIn = s
			creates.lostAnswer(s)
		}
		return result, err
	})
	if err == nil {
		owned = paths(result)
	}
	return result, err
}

func abandoned(err error) bool {
	var a *attemptError
	return errors.As(err, &a) && a.abandoned
}

// findAll looks for the nodes of one transaction: where one is, all are. It may have been applied twice: then the nodes of the first time
// are found. Nodes without protection have the path they were asked for, or none if the servers appended a number to it. Nil means
// that nothing was found.
func (s *session) findAll(ctx context.Context, nodes []creation, uncertainIn *session) ([]string, error) {
	if err := s.awaitClosed(ctx, uncertainIn); err != nil {
		return nil, err
	}
	found, err := s.search(ctx, nodes)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	first := slices.MinFunc(found, func(a, b match) int { return cmp.Compare(a.czxid, b.czxid) }).czxid
	all := make([]string, len(nodes))
	for i, n := range nodes {
		if n.guid == "" && !n.sequential() {
			all[i] = n.full
		}
	}
	for _, m := range found {
		if m.czxid == first {
			all[m.node] = m.full
		}
	}
	return all, nil
}

// match is a node that was made for a creation.
type match struct {
	node  int // which
	full  string
	czxid int64
}

// search looks for protected nodes, after a sync. An ephemeral node that belongs to another session is not one of them.
func (s *session) search(ctx context.Context, nodes []creation) ([]match, error) {
	var found []match
	lists := map[string][]string{} // of each parent, which may have many of the nodes
	for i, n := range nodes {
		if n.guid == "" {
			continue
		}
		parent := znode.Parent(n.full)
		if _, known := lists[parent]; !known {
			children, err := s.list(ctx, parent)
			if err != nil {
				return nil, err
			}
			lists[parent] = children
		}
		for _, name := range lists[parent] {
			if !znode.IsProtectedBy(name, n.guid) {
				continue
			}
			m := match{node: i, full: znode.Join(parent, "/"+name)}
			czxid, err := s.czxidOf(ctx, m.full, n.ephemeral())
			if err != nil {
				return nil, err
			}
			if m.czxid = czxid; czxid != 0 {
				found = append(found, m)
			}
		}
	}
	return found, nil
}

// list reads the children of a node, which need not exist, after a sync.
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

// made is the transaction that created a node; 0 if the node is not there, or is not the session's and should be.
func (s *session) czxidOf(ctx context.Context, full string, ephemeral bool) (czxid int64, err error) {
	r, err := s.read(ctx, watchKey{full, watchExists})
	if err != nil || r.stat == nil || ephemeral && r.stat.EphemeralOwner != s.id() {
		return 0, err
	}
	return r.stat.Czxid, nil
}

// outlive waits until nothing more can come of what was asked for in another session.
func (s *session) awaitClosed(ctx context.Context, other *session) error {
	if other == nil || other == s {
		return nil
	}
	select {
	case <-other.closed:
		return nil
	case <-s.done:
		return notApplied(s.reason())
	case <-ctx.Done():
		return notApplied(ctxerr.Of(ctx))
	}
}

// sweep deletes, in the background, protected nodes that were created in a session that is over, and may outlive it.
func (o ops) cleanUpAfter(l *lateNodes, uncertainIn *session) {
	where := o
	where.bound, where.noCaller = nil, true
	where.runInBackground(call{name: "sweep", path: l.path(), full: l.path(), class: repeatable}, func(ctx context.Context, s *session) error {
		if err := s.awaitClosed(ctx, uncertainIn); err != nil {
			return err
		}
		return s.deleteLate(ctx, []*lateNodes{l})
	})
}

// errand does something in the background until it has succeeded, cannot succeed, or the client or the session it is bound to is
// over. The result is sent once, to a channel that has room for it.
func (o ops) runInBackground(c call, step func(context.Context, *session) error) <-chan error {
	result := make(chan error, 1)
	task := o
	task.background = true
	spawned := o.core.spawn(func() {
		o.metrics().Add(metrics.PendingDeletions, 1, metrics.Labels{})
		_, err := run(context.Background(), task, c, func(ctx context.Context, s *session) (nothing, error) {
			return nothing{}, step(ctx, s)
		})
		o.logFailure(c, err)
		o.metrics().Add(metrics.PendingDeletions, -1, metrics.Labels{})
		result <- err
	})
	if !spawned {
		result <- c.failed(NotApplied, ErrClosed)
	}
	return result
}

// gaveUp tells that there may be something left for good, unless err says that there is not. Nobody else may be told.
func (o ops) logFailure(c call, err error) {
	if err != nil && !isNoNode(err) && !o.ended() {
		o.Logger().Warn("gave up", zap.String("op", c.name), zap.String("path", c.full), zap.Error(err))
	}
}

// ended reports whether the operations are bound to a session that is over, and whose ephemeral nodes go without our help.
func (o ops) ended() bool { return o.bound != nil && o.bound.reason() != nil }

// backgroundPolicy is the policy of errands.
func backgroundPolicy(attempt int, _ time.Duration) (time.Duration, bool) {
	return min(2*time.Second, 50*time.Millisecond<<min(attempt, 10)), true
}
