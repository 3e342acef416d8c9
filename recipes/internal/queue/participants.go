package queue

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
)

// Participants returns the nodes of the given kinds in the order of the queue. It leaves out a
// node that is deleted meanwhile.
func (q *Queue) Participants(ctx context.Context, kinds ...string) ([]recipes.Participant, error) {
	children, _, err := q.client.Children(ctx, q.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("participants: %w", err)
	}
	var all []recipes.Participant
	nodes := sortedNodes(children, kinds)
	for _, m := range nodes {
		data, stat, err := q.client.Get(ctx, q.node(m.name))
		if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("participants: %w", err)
		}
		all = append(all, participant(q.node(m.name), data, stat))
	}
	if anyAtCounterEnd(nodes) {
		slices.SortStableFunc(all, func(a, b recipes.Participant) int { return cmp.Compare(a.Token, b.Token) })
	}
	return all, nil
}

// Count returns how many of a directory's children are nodes of the kind.
func Count(children []string, kind string) int { return len(sortedNodes(children, []string{kind})) }

// First returns the first node of the given kinds.
func (q *Queue) First(ctx context.Context, kinds ...string) (recipes.Participant, error) {
	children, _, err := q.client.Children(ctx, q.path)
	if err != nil {
		return recipes.Participant{}, err
	}
	nodes := sortedNodes(children, kinds)
	switch {
	case len(nodes) == 0:
		return recipes.Participant{}, errors.New("nobody is first: there is no node")
	case anyAtCounterEnd(nodes):
		return recipes.Participant{}, errors.New("the names of the nodes do not tell who is first in line")
	}
	node := q.node(nodes[0].name)
	data, stat, err := q.client.Get(ctx, node)
	if err != nil {
		return recipes.Participant{}, err
	}
	return participant(node, data, stat), nil
}

// Watch returns the first node of the given kinds, and a watch that fires when another one may
// be first. If there is none, or no such directory, the Participant is zero. Nodes behind the
// first one do not fire the watch.
func (q *Queue) Watch(ctx context.Context, kinds ...string) (recipes.Participant, *framework.Watch, error) {
	for {
		first, watch, err := q.watch(ctx, kinds)
		if !ctxerr.Answered(ctx, err, ErrRetry) {
			return first, watch, err
		}
	}
}

func (q *Queue) watch(ctx context.Context, kinds []string) (recipes.Participant, *framework.Watch, error) {
	children, _, err := q.client.Children(ctx, q.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return q.watchDirectory(ctx)
	}
	if err != nil {
		return recipes.Participant{}, nil, err
	}
	nodes := sortedNodes(children, kinds)
	if len(nodes) == 0 {
		return q.watchChildren(ctx, kinds)
	}
	first := q.node(nodes[0].name)
	if anyAtCounterEnd(nodes) {
		all, err := q.Participants(ctx, kinds...)
		if err == nil && len(all) == 0 {
			err = ErrRetry
		}
		if err != nil {
			return recipes.Participant{}, nil, err
		}
		first = all[0].Node
	}
	data, stat, watch, err := q.client.GetW(ctx, first)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = ErrRetry
	}
	if err != nil {
		return recipes.Participant{}, nil, err
	}
	return participant(first, data, stat), watch, nil
}

// watchDirectory watches for the creation of the directory.
func (q *Queue) watchDirectory(ctx context.Context) (recipes.Participant, *framework.Watch, error) {
	stat, watch, err := q.client.ExistsW(ctx, q.path)
	if err == nil && stat != nil {
		err = ErrRetry
	}
	return recipes.Participant{}, watch, err
}

// watchChildren watches for the first node of an empty queue.
func (q *Queue) watchChildren(ctx context.Context, kinds []string) (recipes.Participant, *framework.Watch, error) {
	children, _, watch, err := q.client.ChildrenW(ctx, q.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) || err == nil && hasNode(children, kinds) {
		err = ErrRetry
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
