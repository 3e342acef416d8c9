package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// DeleteRecursive deletes a node and everything below it, of any version. It is not atomic: it
// deletes children before their parents, in transactions of at most a hundred nodes. Nodes that are
// created or deleted by others below path meanwhile are no failure: it deletes what it finds.
//
// It refuses "/", also of a namespace, and the nodes of ZooKeeper itself, which are at and below
// /zookeeper. So it never deletes a node outside the namespace and the chroot of the client. If
// there is no such node to begin with, the error matches zk.ErrNoNode. DeleteRecursive fails
//
//   - with zk.ErrNoAuth, if the servers refuse to delete or to list a node;
//   - with zk.ErrNotEmpty, if others create nodes below path faster than they can be deleted;
//   - when ctx ends, and as Delete fails.
//
// After a failure a part of the tree is left: no node without its parent. The outcome is then
// unknown, unless nothing was deleted. A call again continues. After a lost answer DeleteRecursive
// continues by itself, as the retry policy says: so it may delete a tree that others have created
// at path meanwhile.
//
// It waits for one transaction at a time, and for at most a hundred lists. A leaf needs no list. The
// names of all children of a node are in memory at once. If they take more than 256 MiB, the client
// refuses the answer, and DeleteRecursive fails for want of a connection. Curator:
// deletingChildrenIfNeeded, ZKPaths.deleteChildren.
func (o ops) DeleteRecursive(ctx context.Context, path string) error {
	c := o.call("delete recursively", path, repeatable)
	c = c.require(checkDeletable(c))
	d := &treeDeletion{root: o.root}
	_, err := run(ctx, o, c, func(ctx context.Context, s *session) (nothing, error) {
		return nothing{}, d.attempt(ctx, s, c.full)
	})
	return err
}

// systemTree has the nodes of the servers.
const systemTree = "/zookeeper"

// checkDeletable refuses the root of a client, and the nodes of the servers.
func checkDeletable(c call) error {
	switch {
	case c.path == "/":
		return invalid("the root is not deleted recursively")
	case c.full == systemTree || strings.HasPrefix(c.full, systemTree+"/"):
		return invalid("the nodes of the servers are not deleted recursively")
	}
	return nil
}

// treeDeletion is the progress of a DeleteRecursive.
type treeDeletion struct {
	root  string // of the client's paths, for errors
	begun bool   // a node was deleted, or may have been
	found bool   // the root of the tree was there
}

// attempt deletes the tree, or what earlier attempts have left of it.
func (d *treeDeletion) attempt(ctx context.Context, s *session, full string) error {
	err := d.deleteTrees(ctx, s, []string{full})
	switch {
	case err == nil && !d.found:
		return notApplied(zk.ErrNoNode)
	case err != nil && d.begun && OutcomeOf(err) != Unknown:
		return &attemptError{outcome: Unknown, transient: IsTransient(err), err: err}
	}
	return err
}

// deleteTrees deletes the trees below and at full.
func (d *treeDeletion) deleteTrees(ctx context.Context, s *session, full []string) error {
	for some := range batches(full) {
		if err := d.deleteBatch(ctx, s, slices.Clone(some)); err != nil {
			return err
		}
	}
	return nil
}

// batches yields full in parts that fit into one transaction.
func batches(full []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(full) > 0 {
			n, size := 0, 0
			for n < len(full) && n < deletedAtOnce && (n == 0 || size+len(full[n])+multiOverhead <= batchBytes) {
				size += len(full[n]) + multiOverhead
				n++
			}
			if !yield(full[:n]) {
				return
			}
			full = full[n:]
		}
	}
}

// maxRounds is how often the children of the same nodes are deleted before it is an error that there
// are new ones.
const maxRounds = 10

// deleteBatch deletes the trees of one batch. It deletes the nodes without looking for children,
// because most nodes have none.
func (d *treeDeletion) deleteBatch(ctx context.Context, s *session, left []string) error {
	for rounds := 0; len(left) > 0; {
		i, err := s.deleteAll(ctx, left)
		switch {
		case err == nil:
			d.begun, d.found = true, true
			return nil
		case ctx.Err() == nil && isNoNode(err):
			left = slices.Delete(left, i, i+1)
		case ctx.Err() == nil && errors.Is(err, zk.ErrNotEmpty) && rounds < maxRounds:
			rounds++
			d.found = true
			children, err := d.childrenOf(ctx, s, left)
			if err == nil {
				err = d.deleteTrees(ctx, s, children)
			}
			if err != nil {
				return err
			}
		default:
			return d.failed(left[i], err)
		}
	}
	return nil
}

// failed returns the error of a transaction in which the deletion of a node failed with err.
func (d *treeDeletion) failed(full string, err error) error {
	if OutcomeOf(err) == Unknown {
		d.begun, d.found = true, true
	}
	if isRefusal(err) {
		return fmt.Errorf("%s: %w", znode.Strip(d.root, full), err)
	}
	return err
}

// listed is the answer to one list of childrenOf.
type listed struct {
	full     string
	children []string
	err      error
}

// childrenOf returns the full paths of the children of all nodes. It sends all lists before it waits
// for an answer. A node that does not exist has no children.
func (d *treeDeletion) childrenOf(ctx context.Context, s *session, nodes []string) (all []string, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	answers := make(chan listed, len(nodes)) // room for all: no answer waits for this goroutine
	s.conn.Together(func() {
		for _, full := range nodes {
			request, parse := watchKey{full, watchChildren}.request(false)
			start(s, request, parse, func(r reading, err error) { answers <- listed{full, r.children, err} })
		}
	})
	for range nodes {
		select {
		case l := <-answers:
			switch {
			case isNoNode(l.err):
			case errors.Is(l.err, zk.ErrNoAuth):
				return nil, d.failed(l.full, l.err)
			case l.err != nil:
				return nil, l.err
			}
			for _, name := range l.children {
				all = append(all, znode.Join(l.full, "/"+name))
			}
		case <-ctx.Done():
			return nil, notApplied(ctxerr.Of(ctx))
		}
	}
	return all, nil
}
