package ownership_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

const (
	heldA = "docent.lock.held{test a} 1"
	heldB = "docent.lock.held{test b} 1"
)

func TestLocksAreCountedWhileTheyAreHeld(t *testing.T) {
	var m testzk.Metrics
	o := newOwner(t, framework.WithMetrics(&m))
	h := o.hold("a", "b")
	require.Equal(t, []string{heldA, heldB}, m.Held())
	inner, ok := ownership.Reenter(h.Context(context.Background()), lockKey("a"))
	require.True(t, ok)
	require.Equal(t, []string{heldA, heldB}, m.Held(), "one ownership is one lock")
	require.NoError(t, h.Release())
	require.Equal(t, []string{heldA, heldB}, m.Held())
	require.NoError(t, inner.Release())
	require.Empty(t, m.Held())

	lost := ownership.Combine(nil, o.hold("a"), o.hold("b"))
	require.Equal(t, []string{heldA, heldB}, m.Held(), "the parts are counted, and not the whole")
	require.NoError(t, o.Delete(testzk.Context(t), lost.Paths()[1], -1))
	_, err := lost.Guard(testzk.Context(t))
	require.ErrorIs(t, err, ownership.ErrNodeDeleted)
	testzk.Eventually(t, func() bool { return len(m.Held()) == 0 }, "a lost lock is counted")
	require.Error(t, lost.Release())
	require.Empty(t, m.Held())
}

// decisions is a Handoff that takes its decisions one after another, and notes the holds.
type decisions struct {
	next []ownership.Decision
	hold *ownership.Hold
}

func (d *decisions) Next(h *ownership.Hold) ownership.Decision {
	d.hold = h
	decision := d.next[0]
	d.next = d.next[1:]
	return decision
}

func (*decisions) Requested() {}
func (*decisions) Ended()     {}

func TestNodesThatAreKeptAreNotHeld(t *testing.T) {
	var m testzk.Metrics
	o := newOwner(t, framework.WithMetrics(&m))
	d := &decisions{next: []ownership.Decision{
		ownership.Passed, ownership.Kept, ownership.Passed, ownership.Kept, ownership.Delete,
	}}
	d.hold = o.hold("a")
	d.hold.SetHandoff(d)
	for _, want := range [][]string{{heldA}, nil, {heldA}, nil, nil} {
		require.NoError(t, d.hold.Release())
		require.Equal(t, want, m.Held())
	}
}
