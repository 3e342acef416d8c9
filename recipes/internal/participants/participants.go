// Package participants reads which nodes are in a queue, in which order, and which of them hold the
// lock. It acquires nothing.
package participants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// List returns the nodes of the given kinds in the order of the queue, and which of them
// hold the lock. It leaves out a node that is deleted meanwhile.
func List(ctx context.Context, q *queue.Queue, kinds ...string) ([]recipes.Participant, error) {
	children, dir, err := q.Client().Children(ctx, q.Path())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("participants: %w", ctxerr.With(ctx, err))
	}
	nodes, complete, err := readNodes(ctx, q, children, kinds)
	if err != nil {
		return nil, fmt.Errorf("participants: %w", ctxerr.With(ctx, err))
	}
	var unchangedSince time.Time
	if complete {
		unchangedSince = lastCreation(nodes, dir)
	}
	var all []recipes.Participant
	for _, n := range nodes {
		if !n.listed {
			continue
		}
		if n.Holds = !slices.ContainsFunc(nodes, n.waitsFor); n.Holds {
			n.HeldSince = unchangedSince
		}
		all = append(all, n.Participant)
	}
	return all, nil
}

// errChanged: the queue has changed between two reads.
var errChanged = errors.New("participants: the queue has changed")

// readNode is a node of a queue, and what was read of it.
type readNode struct {
	locknode.Node
	recipes.Participant      // zero unless it was read
	listed              bool // it is of the kinds to return
	conflicts           bool
}

// readNodes reads the nodes of the given kinds among children. It adds the other nodes of the queue,
// which it reads only if the numbers do not show the order. It leaves out nodes that do not exist
// any more, and reports whether there were none.
func readNodes(ctx context.Context, q *queue.Queue,
	children, kinds []string) (all []readNode, complete bool, err error) {
	nodes := locknode.Sorted(children, q.Rules().Kinds())
	unordered := locknode.AnyAtCounterEnd(nodes)
	complete = true
	for _, m := range nodes {
		n := readNode{Node: m}
		_, n.conflicts = locknode.Parse(m.Name, q.Rules().Conflicting)
		_, n.listed = locknode.Parse(m.Name, kinds)
		if n.listed || unordered {
			data, stat, err := q.Client().Get(ctx, q.Child(m.Name))
			if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
				complete = false
				continue
			}
			if err != nil {
				return nil, false, err
			}
			n.Participant = participant(q.Child(m.Name), data, stat)
		}
		all = append(all, n)
	}
	if unordered {
		slices.SortStableFunc(all, func(a, b readNode) int { return cmp.Compare(a.Token, b.Token) })
	}
	return all, complete, nil
}

// waitsFor reports whether other conflicts with n and is ahead of it.
func (n readNode) waitsFor(other readNode) bool {
	if n.AtCounterEnd() && other.AtCounterEnd() {
		return other.conflicts && other.Token < n.Token
	}
	return other.conflicts && locknode.Before(other.Seq, n.Seq)
}

// lastCreation returns when the last node of a directory was created, if it is one of those that
// were read and no node was deleted since. Otherwise it returns the zero Time. The pzxid of dir is
// the transaction of the last creation or deletion.
func lastCreation(nodes []readNode, dir *zk.Stat) time.Time {
	for _, n := range nodes {
		if n.Token == dir.Pzxid {
			return n.Since
		}
	}
	return time.Time{}
}

// First returns the first node of the given kinds. The first of all nodes of a queue holds the lock.
func First(ctx context.Context, q *queue.Queue, kinds ...string) (recipes.Participant, error) {
	children, dir, err := q.Client().Children(ctx, q.Path())
	if err != nil {
		return recipes.Participant{}, err
	}
	nodes := locknode.Sorted(children, kinds)
	switch {
	case len(nodes) == 0:
		return recipes.Participant{}, errors.New("the queue is empty")
	case locknode.AnyAtCounterEnd(nodes):
		return recipes.Participant{}, errors.New("the names of the nodes do not show their order")
	}
	first := q.Child(nodes[0].Name)
	data, stat, err := q.Client().Get(ctx, first)
	if err != nil {
		return recipes.Participant{}, err
	}
	p := participant(first, data, stat)
	if p.Holds = locknode.Sorted(children, q.Rules().Kinds())[0].Seq == nodes[0].Seq; p.Holds {
		p.HeldSince = lastCreation([]readNode{{Participant: p}}, dir)
	}
	return p, nil
}

// Watch returns the first node of the given kinds, which holds the lock, and a watch that fires when
// another one may be first. If there is none, or no such directory, the Participant is zero. Nodes
// behind the first one do not fire the watch.
func Watch(ctx context.Context, q *queue.Queue, kinds ...string) (recipes.Participant, *framework.Watch, error) {
	for {
		first, watch, err := watch(ctx, q, kinds)
		if !ctxerr.Answered(ctx, err, errChanged) {
			return first, watch, err
		}
	}
}

func watch(ctx context.Context, q *queue.Queue, kinds []string) (recipes.Participant, *framework.Watch, error) {
	children, dir, err := q.Client().Children(ctx, q.Path())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return watchDirectory(ctx, q)
	}
	if err != nil {
		return recipes.Participant{}, nil, err
	}
	nodes := locknode.Sorted(children, kinds)
	if len(nodes) == 0 {
		return watchChildren(ctx, q, kinds)
	}
	first := q.Child(nodes[0].Name)
	if locknode.AnyAtCounterEnd(nodes) {
		all, err := List(ctx, q, kinds...)
		if err == nil && len(all) == 0 {
			err = errChanged
		}
		if err != nil {
			return recipes.Participant{}, nil, err
		}
		first, dir = all[0].Node, &zk.Stat{} // of another list, so dir proves nothing
	}
	data, stat, watch, err := q.Client().GetW(ctx, first)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = errChanged
	}
	if err != nil {
		return recipes.Participant{}, nil, err
	}
	p := participant(first, data, stat)
	p.Holds, p.HeldSince = true, lastCreation([]readNode{{Participant: p}}, dir)
	return p, watch, nil
}

// watchDirectory watches for the creation of the directory.
func watchDirectory(ctx context.Context, q *queue.Queue) (recipes.Participant, *framework.Watch, error) {
	stat, watch, err := q.Client().ExistsW(ctx, q.Path())
	if err == nil && stat != nil {
		err = errChanged
	}
	return recipes.Participant{}, watch, err
}

// watchChildren watches for the first node of an empty queue.
func watchChildren(ctx context.Context, q *queue.Queue, kinds []string) (recipes.Participant, *framework.Watch, error) {
	children, _, watch, err := q.Client().ChildrenW(ctx, q.Path())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) || err == nil && locknode.Has(children, kinds) {
		err = errChanged
	}
	return recipes.Participant{}, watch, err
}

func participant(node string, data []byte, stat *zk.Stat) recipes.Participant {
	return recipes.Participant{
		Node:     node,
		Data:     data,
		Identity: recipes.ParseIdentity(data),
		Session:  stat.EphemeralOwner,
		Token:    stat.Czxid,
		Since:    time.UnixMilli(stat.Ctime),
	}
}
