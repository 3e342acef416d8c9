package simulation_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/group"
)

// audience is what a client has been told of the group.
type audience struct {
	run       *simulation
	name      string // of the client
	stop      context.CancelFunc
	observing sync.WaitGroup

	mu    sync.Mutex
	told  map[string]group.Member
	token map[string]int64 // the last one of each id
}

// newAudience observes the group until close is called.
func newAudience(m *member, c *framework.Client) *audience {
	ctx, stop := context.WithCancel(context.Background())
	a := &audience{
		run: m.simulation, name: m.name, stop: stop, told: map[string]group.Member{}, token: map[string]int64{},
	}
	a.observing.Go(func() { a.observe(ctx, c) })
	return a
}

func (a *audience) observe(ctx context.Context, c *framework.Client) {
	for change, err := range group.Observe(ctx, c, groupPath) {
		if err != nil {
			if !framework.IsTransient(err) && !oneOf(err, expected...) {
				a.run.errorf("%s: observe the group: %v", a.name, err)
			}
			continue
		}
		a.hear(change)
	}
	if ctx.Err() == nil {
		a.run.errorf("%s: the sequence of changes ends by itself", a.name)
	}
}

func (a *audience) close() {
	a.stop()
	a.observing.Wait()
}

// hear applies a change.
func (a *audience) hear(c group.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if problem := a.problemLocked(c); problem != "" {
		a.run.errorf("%s: %v is reported: %s", a.name, c, problem)
	}
	if id := c.Member.ID; c.Kind == group.Removed {
		delete(a.told, id)
	} else {
		a.told[id], a.token[id] = c.Member, c.Member.Token
	}
}

// problemLocked says why a change is impossible.
func (a *audience) problemLocked(c group.Change) string {
	now := c.Member
	before, there := a.told[now.ID]
	switch {
	case there != (c.Kind != group.Added):
		return fmt.Sprintf("there before: %v", there)
	case c.Kind == group.Added && now.Token <= a.token[now.ID]:
		return fmt.Sprintf("token %d after %d", now.Token, a.token[now.ID])
	case c.Kind != group.Added && now.Token != before.Token:
		return fmt.Sprintf("token %d, not %d", now.Token, before.Token)
	case c.Kind != group.Added && (string(now.Payload) == string(before.Payload)) != (c.Kind == group.Removed):
		return fmt.Sprintf("payload %q after %q", now.Payload, before.Payload)
	}
	return ""
}

// text describes the members as nodesBelow does.
func (a *audience) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, id := range slices.Sorted(maps.Keys(a.told)) {
		all = append(all, groupPath+"/"+id+" "+string(a.told[id].Payload))
	}
	return strings.Join(all, "\n")
}

// check waits until the client knows the group as it is.
func (a *audience) check() {
	want := strings.Join(a.run.nodesBelow(groupPath), "\n")
	if !eventually(func() bool { return a.text() == want }) {
		a.run.errorf("%s: the group is\n%s\nits changes say\n%s", a.name, want, a.text())
	}
}

// eventually reports whether holds returns true before a free lock must have been acquired.
func eventually(holds func() bool) bool {
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
