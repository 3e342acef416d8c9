package group_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/group"
)

const path = "/workers"

// The helpers of all recipes.
var (
	virtually = testlock.Virtually
	client    = testlock.Named
	expire    = testlock.Expire
	settle    = testlock.Rest
	outage    = testlock.Outage
)

func join(t testing.TB, c *framework.Client, path, id, payload string, opts ...group.Option) *group.Membership {
	t.Helper()
	m, err := group.Join(testzk.Context(t), c, path, id, []byte(payload), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// list returns the members as "id=payload".
func list(t testing.TB, c *framework.Client, path string, opts ...group.Option) (all []string) {
	t.Helper()
	members, err := group.Members(testzk.Context(t), c, path, opts...)
	require.NoError(t, err)
	for _, m := range members {
		all = append(all, text(m))
	}
	return all
}

func text(m group.Member) string { return fmt.Sprintf("%s=%s", m.ID, m.Payload) }

// watcher follows a group, and records the changes.
type watcher struct {
	t *testing.T

	mu      sync.Mutex
	changes []string
	known   map[string]group.Member // by node
	errs    []error
	ended   bool
}

// watch follows a group until the test ends.
func watch(t *testing.T, c *framework.Client, path string, opts ...group.Option) *watcher {
	t.Helper()
	w := &watcher{t: t, known: map[string]group.Member{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change, err := range group.Observe(ctx, c, path, opts...) {
			w.add(change, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return w
}

// add checks that each change is a difference to what is known.
func (w *watcher) add(c group.Change, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	m := c.Member
	w.changes = append(w.changes, fmt.Sprintf("%v %s", c.Kind, text(m)))
	before, there := w.known[m.Node]
	switch {
	case c.Kind == group.Added && there:
		w.t.Errorf("%v was added twice", m)
	case c.Kind != group.Added && (!there || before.Token != m.Token):
		w.t.Errorf("%v: %v, but known is %v", c.Kind, m, before)
	case c.Kind == group.Changed && text(before) == text(m):
		w.t.Errorf("%v has not changed", m)
	}
	if c.Kind == group.Removed {
		delete(w.known, m.Node)
	} else {
		w.known[m.Node] = m
	}
}

// take returns the changes since the last call.
func (w *watcher) take() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, w.changes = w.changes, nil
	return all
}

// state returns the errors, and whether the sequence has ended.
func (w *watcher) state() (errs []error, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.errs), w.ended
}

// members returns the members that are known.
func (w *watcher) members() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.known {
		all = append(all, text(m))
	}
	slices.Sort(all)
	return all
}
