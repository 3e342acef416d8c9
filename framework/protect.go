package framework

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// A node that a create may have left is returned to the caller or deleted. After a lost answer the
// client looks for the node by the GUID in its name, after a sync. If it finds the node, it returns
// it to the caller. If it does not, it repeats the create; but the first request may still be
// applied: see lateNodes. In the next session it cannot be, because the session of the request was
// closed or has expired.

// uncertainCreate tracks the nodes that the attempts of one call may create. After the call it
// waits for the answers that the call did not wait for. Then it deletes the nodes that the caller
// did not get.
type uncertainCreate struct {
	o     ops
	nodes []creation

	mu      sync.Mutex
	pending int        // answers that the call did not wait for and that have not come
	lostIn  []*session // sessions of the attempts with a lost answer
	created []string   // by attempts that were answered after the call had left
	ended   bool
	owned   owned // set by end
}

// abandon registers an answer that the call does not wait for.
func (c *uncertainCreate) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
}

// answered registers that such an answer has come, perhaps before the call of abandon. created are
// the nodes that the attempt created.
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

// lostAnswer registers that the answer to an attempt in s was lost.
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

// owned are the nodes that a caller got.
type owned struct {
	paths []string
	czxid int64 // 0: not known
}

// end is called at the end of the call.
func (c *uncertainCreate) end(o owned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.owned = true, o
	c.cleanUpLocked()
}

func (c *uncertainCreate) cleanUpLocked() {
	if !c.ended || c.pending > 0 {
		return
	}
	for _, s := range c.lostIn {
		s.late.add(s, c.lateNodes())
	}
	c.created = slices.DeleteFunc(c.created, func(full string) bool {
		return full == "" || slices.Contains(c.owned.paths, full)
	})
	if len(c.created) > 0 {
		first := c.created[0]
		d := &deletion{left: c.created, uncertain: true}
		c.o.runInBackground(call{name: "delete", path: first, full: first, class: repeatable}, d.attempt)
	}
}

// lateNodes returns the protected nodes by their parents. It leaves out their data.
func (c *uncertainCreate) lateNodes() (all []*lateNodes) {
	now := conn.Now()
	for _, n := range c.nodes {
		if n.guid == "" {
			continue
		}
		parent := znode.Parent(n.full)
		i := slices.IndexFunc(all, func(below *lateNodes) bool { return below.parent == parent })
		if i < 0 {
			i = len(all)
			all = append(all, &lateNodes{o: c.o, parent: parent, owned: c.owned, since: now})
		}
		all[i].nodes = append(all[i].nodes, creation{full: n.full, flags: n.flags, guid: n.guid, named: n.named})
	}
	return all
}

// protect makes attempts at something that creates all of nodes or none. If one of the nodes is
// protected, an attempt that may have been applied is followed by a search. adopt returns the
// result from the found nodes, and nodesOf returns the nodes of a result.
func protect[T any](ctx context.Context, o ops, c call, nodes []creation,
	attempt func(ctx context.Context, s *session, late func(T, error)) (T, error),
	adopt func(found []string) T, nodesOf func(T) owned,
) (T, error) {
	protected := slices.ContainsFunc(nodes, func(n creation) bool { return n.guid != "" })
	if !protected {
		return run(ctx, o, c, func(ctx context.Context, s *session) (T, error) { return attempt(ctx, s, nil) })
	}
	c.class = afterSearch
	creates := &uncertainCreate{o: o, nodes: nodes}
	var mine owned
	defer func() { creates.end(mine) }() // also after a panic or Goexit in a retry policy
	var lostIn *session                  // of the last attempt whose answer was lost
	uncertain := false                   // nothing was looked for since then
	find := func(ctx context.Context, s *session) (result T, ended bool, err error) {
		found, err := s.findAll(ctx, nodes, lostIn)
		if uncertain = err != nil; err != nil || found.paths == nil {
			return result, err != nil, err
		}
		mine.czxid = found.czxid
		return adopt(found.paths), true, nil
	}
	result, err := run(ctx, o, c, func(ctx context.Context, s *session) (T, error) {
		if uncertain {
			if result, ended, err := find(ctx, s); ended {
				return result, err
			}
		}
		result, err := attempt(ctx, s, func(late T, err error) { creates.answered(s, nodesOf(late).paths, err) })
		switch {
		case err == nil:
		case abandoned(err):
			lostIn, uncertain = s, true
			creates.abandon()
		case OutcomeOf(err) == Unknown:
			lostIn, uncertain = s, true
			creates.lostAnswer(s)
		case errors.Is(err, zk.ErrNodeExists) && lostIn != nil:
			// The connection has changed after the search, and an earlier attempt was ahead on the new one.
			if found, ended, failed := find(ctx, s); ended {
				return found, failed
			}
		}
		return result, err
	})
	if err == nil {
		all := nodesOf(result)
		mine = owned{all.paths, cmp.Or(all.czxid, mine.czxid)}
	}
	return result, err
}

func abandoned(err error) bool {
	var a *attemptError
	return errors.As(err, &a) && a.abandoned
}

// findAll looks for the nodes of one transaction: they all exist, or none. If the transaction was
// applied twice, findAll returns the nodes of the first time. The result has the full path of each
// node, or an empty one for an unprotected sequential node, because its number is unknown. findAll
// returns no paths if it found no node.
func (s *session) findAll(ctx context.Context, nodes []creation, uncertainIn *session) (owned, error) {
	if err := s.awaitClosed(ctx, uncertainIn); err != nil {
		return owned{}, err
	}
	found, err := s.search(ctx, nodes)
	if err != nil || len(found) == 0 {
		return owned{}, err
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
	return owned{all, first}, nil
}

// match is a node that was created from a creation.
type match struct {
	node  int // its index
	full  string
	czxid int64
}

// search looks for protected nodes, after a sync. It ignores an ephemeral node of another session.
func (s *session) search(ctx context.Context, nodes []creation) ([]match, error) {
	var found []match
	lists := map[string][]string{} // the children of each parent
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
			if !n.made(name) {
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

// list returns the children of a node after a sync. It returns none if there is no such node.
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

// czxidOf returns the transaction that created a node. It returns 0 if there is no such node, or if
// it should be an ephemeral node of s and is not.
func (s *session) czxidOf(ctx context.Context, full string, ephemeral bool) (czxid int64, err error) {
	r, err := s.read(ctx, watchKey{full, watchExists})
	if err != nil || r.stat == nil || ephemeral && r.stat.EphemeralOwner != s.id() {
		return 0, err
	}
	return r.stat.Czxid, nil
}

// awaitClosed waits until no request of the other session can be applied any more.
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

// cleanUpAfter deletes, in the background, protected nodes of an ended session that may outlive it.
func (o ops) cleanUpAfter(all []*lateNodes, uncertainIn *session) {
	where := o
	where.bound, where.noCaller = nil, true
	first := all[0].path()
	c := call{name: "cleanup", path: first, full: first, class: repeatable}
	parents := byParent(all)
	where.runInBackground(c, func(ctx context.Context, s *session) error {
		if err := s.awaitClosed(ctx, uncertainIn); err != nil {
			return err
		}
		for len(parents) > 0 {
			below := parents[0]
			parents = parents[1:]
			if err := s.deleteLate(ctx, below); err != nil {
				parents = append(parents, below) // the next attempt begins with another parent
				return err
			}
		}
		return nil
	})
}

// runInBackground repeats step in the background until it succeeds or cannot succeed, or until the
// client is closed or the session of o has ended. The error is sent once, to a buffered channel.
func (o ops) runInBackground(c call, step func(context.Context, *session) error) <-chan error {
	result := make(chan error, 1)
	task := o
	task.background = true
	spawned := o.core.spawn(func() {
		err := c.failed(Unknown, errGoroutineEnded)
		defer func() { result <- err }()
		o.core.pending(func() {
			_, err = run(context.Background(), task, c, func(ctx context.Context, s *session) (nothing, error) {
				return nothing{}, step(ctx, s)
			})
			o.logFailure(c, err)
		})
	})
	if !spawned {
		result <- c.failed(NotApplied, ErrClosed)
	}
	return result
}

// errGoroutineEnded means that code of the program, such as metrics, has ended the goroutine.
var errGoroutineEnded = errors.New("framework: code of the program ended the goroutine of the deletion")

// logFailure logs that a node may be left for good, because there may be no caller that gets the
// error. It does not if the node is missing, or if its session has ended.
func (o ops) logFailure(c call, err error) {
	if err != nil && !isNoNode(err) && !o.ended() {
		o.Logger().Warn("background deletion failed", zap.String("op", c.name), zap.String("path", c.full),
			zap.Error(err))
	}
}

// ended reports whether the operations are bound to a session that has ended. The servers delete
// its ephemeral nodes.
func (o ops) ended() bool { return o.bound != nil && o.bound.reason() != nil }

// backgroundPolicy is the retry policy of background tasks. It never ends.
func backgroundPolicy(attempt int, _ time.Duration) (time.Duration, bool) {
	return min(2*time.Second, 50*time.Millisecond<<min(attempt, 10)), true
}
