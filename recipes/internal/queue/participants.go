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

// Participants reads who has a node of one of the given kinds in the line, first come first. Who leaves while we read is left out.
func (l *Line) Participants(ctx context.Context, kinds ...string) ([]recipes.Participant, error) {
	children, _, err := l.client.Children(ctx, l.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("participants: %w", err)
	}
	var all []recipes.Participant
	line := lineup(children, kinds)
	for _, m := range line {
		data, stat, err := l.client.Get(ctx, l.node(m.name))
		if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("participants: %w", err)
		}
		all = append(all, participant(l.node(m.name), data, stat))
	}
	if atEnd(line) {
		slices.SortStableFunc(all, func(a, b recipes.Participant) int { return cmp.Compare(a.Token, b.Token) })
	}
	return all, nil
}

// Count is how many of a directory's children are nodes of this kind.
func Count(children []string, kind string) int { return len(lineup(children, []string{kind})) }

// First reads who is first of those with a node of one of the given kinds.
func (l *Line) First(ctx context.Context, kinds ...string) (recipes.Participant, error) {
	children, _, err := l.client.Children(ctx, l.path)
	if err != nil {
		return recipes.Participant{}, err
	}
	line := lineup(children, kinds)
	switch {
	case len(line) == 0:
		return recipes.Participant{}, errors.New("nobody is first: there is no node")
	case atEnd(line):
		return recipes.Participant{}, errors.New("the names of the nodes do not tell who is first in line")
	}
	node := l.node(line[0].name)
	data, stat, err := l.client.Get(ctx, node)
	if err != nil {
		return recipes.Participant{}, err
	}
	return participant(node, data, stat), nil
}

// Watch reads who is first of those with a node of one of the given kinds, and a watch that fires when that may have changed. If nobody is, or
// there is no such directory, the Participant is zero. Who comes later than the first costs nothing.
func (l *Line) Watch(ctx context.Context, kinds ...string) (recipes.Participant, *framework.Watch, error) {
	for {
		first, watch, err := l.watch(ctx, kinds)
		if !ctxerr.Answered(ctx, err, ErrAgain) {
			return first, watch, err
		}
	}
}

func (l *Line) watch(ctx context.Context, kinds []string) (recipes.Participant, *framework.Watch, error) {
	children, _, err := l.client.Children(ctx, l.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return l.watchDirectory(ctx)
	}
	if err != nil {
		return recipes.Participant{}, nil, err
	}
	line := lineup(children, kinds)
	if len(line) == 0 {
		return l.watchChildren(ctx, kinds)
	}
	first := l.node(line[0].name)
	if atEnd(line) {
		all, err := l.Participants(ctx, kinds...)
		if err == nil && len(all) == 0 {
			err = ErrAgain
		}
		if err != nil {
			return recipes.Participant{}, nil, err
		}
		first = all[0].Node
	}
	data, stat, watch, err := l.client.GetW(ctx, first)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = ErrAgain
	}
	if err != nil {
		return recipes.Participant{}, nil, err
	}
	return participant(first, data, stat), watch, nil
}

// watchDirectory waits for a directory that is not there.
func (l *Line) watchDirectory(ctx context.Context) (recipes.Participant, *framework.Watch, error) {
	stat, watch, err := l.client.ExistsW(ctx, l.path)
	if err == nil && stat != nil {
		err = ErrAgain
	}
	return recipes.Participant{}, watch, err
}

// watchChildren waits for somebody to come to an empty line.
func (l *Line) watchChildren(ctx context.Context, kinds []string) (recipes.Participant, *framework.Watch, error) {
	children, _, watch, err := l.client.ChildrenW(ctx, l.path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) || err == nil && anyone(children, kinds) {
		err = ErrAgain
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
