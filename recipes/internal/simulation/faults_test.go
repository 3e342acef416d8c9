package simulation_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// harm is a kind of fault. do makes one, at the client m or elsewhere. One that lasts ends by itself,
// or at the end of all.
type harm struct {
	name string
	do   func(h *harms, m *member, link *zktest.Client)
}

// requestHarms are the faults of single requests, which the table of hits has.
var requestHarms = []string{"lost", "answer lost", "late", "reset"}

var harmKinds = []harm{
	{"drop", func(_ *harms, _ *member, c *zktest.Client) { c.Drop() }},
	{"expiry", func(h *harms, _ *member, c *zktest.Client) { h.expire(c) }},
	{"move", func(_ *harms, _ *member, c *zktest.Client) {
		for _, s := range c.Sessions() {
			_ = s.Move() // fails if it has ended
		}
	}},
	{"events late", func(h *harms, _ *member, c *zktest.Client) { c.HoldEvents(); h.later(c.ReleaseEvents) }},
	{"cut", func(h *harms, _ *member, c *zktest.Client) { c.Cut(); h.later(c.Heal) }},
	{"answers cut", func(h *harms, _ *member, c *zktest.Client) { c.CutReplies(); h.later(c.Heal) }},
	{"requests cut", func(h *harms, _ *member, c *zktest.Client) { c.CutRequests(); h.later(c.Heal) }},
	{"pause", func(h *harms, _ *member, c *zktest.Client) { c.Freeze(); h.later(c.Thaw) }},
	{"refusal", func(h *harms, _ *member, c *zktest.Client) {
		c.Refuse(true)
		c.Drop()
		h.later(func() { c.Refuse(false) })
	}},
	{"node deleted", func(h *harms, _ *member, _ *zktest.Client) { h.deleteNode() }},
	{"node changed", func(h *harms, _ *member, _ *zktest.Client) { h.changeNode() }},
	{"client closed", func(_ *harms, m *member, _ *zktest.Client) { m.current().close(); m.open() }},
	{"limit", func(h *harms, _ *member, _ *zktest.Client) { h.setLimit(h.random.IntN(4)) }},
	{"restart", func(h *harms, _ *member, _ *zktest.Client) { require.NoError(h.t, h.srv.Restart()) }},
	{"stop", func(h *harms, _ *member, _ *zktest.Client) {
		h.srv.Stop()
		h.later(func() { _ = h.srv.Start() })
	}},
	{"read-only", func(h *harms, _ *member, _ *zktest.Client) {
		h.srv.SetReadOnly(true)
		h.later(func() { h.srv.SetReadOnly(false) })
	}},
	{"server pause", func(h *harms, _ *member, _ *zktest.Client) {
		h.srv.Pause()
		order := zktest.ResumeOrder(h.random.IntN(2))
		h.later(func() { h.srv.Resume(order) })
	}},
	{"ensemble", func(h *harms, _ *member, _ *zktest.Client) { sim.Disturb(h.srv, h.random, h.longest) }},
	{"short timeouts", func(h *harms, _ *member, _ *zktest.Client) {
		least := max(sessionTimeout/3, 8*h.tick) // the guarantees assume eight ticks
		some := h.srv.Members()[h.random.IntN(len(h.srv.Members())):]
		boundTimeouts(some, least+upTo(h.random, sessionTimeout-least))
		h.later(func() { boundTimeouts(some, time.Hour) })
	}},
}

// harms makes the faults of one run.
type harms struct {
	*simulation
	random *rand.Rand
	rules  []aimed
	made   map[string]int // faults by kind
	stop   chan struct{}
	moving sync.WaitGroup
}

// aimed is a rule with what it is aimed at.
type aimed struct {
	*fault.Rule
	cell
}

func newHarms(s *simulation) *harms {
	return &harms{simulation: s, random: fork(s.random), made: map[string]int{}, stop: make(chan struct{})}
}

// make makes the faults one after another.
func (h *harms) make() {
	if h.restless {
		random := fork(h.random)
		h.moving.Go(func() { h.move(random) })
	}
	h.aim(h.aimed / 2)
	for range h.number {
		time.Sleep(upTo(h.random, h.pause))
		h.aim((h.aimed + h.number - 1) / h.number)
		kind := h.faults[h.random.IntN(len(h.faults))]
		m := h.members[h.random.IntN(len(h.members))]
		kind.do(h, m, h.srv.Client(m.name))
		h.made[kind.name]++
	}
	time.Sleep(h.plan.longest)
	h.calmDown()
}

// boundTimeouts limits the session timeouts that servers grant.
func boundTimeouts(servers []*zktest.Follower, most time.Duration) {
	for _, f := range servers {
		f.SetSessionTimeouts(time.Second, most)
	}
}

// move makes clients change servers until stop is closed.
func (h *harms) move(random *rand.Rand) {
	for {
		select {
		case <-h.stop:
			return
		case <-time.After(upTo(random, 300*time.Millisecond)):
		}
		c := h.srv.Client(h.members[random.IntN(len(h.members))].name)
		[]func(){c.Drop, c.Reset}[random.IntN(2)]()
	}
}

// calmDown undoes all faults.
func (h *harms) calmDown() {
	close(h.stop)
	h.moving.Wait()
	h.setLimit(2)
	_ = h.srv.Start()
	h.srv.Resume(zktest.ExpireFirst)
	h.srv.SetReadOnly(false)
	sim.Calm(h.srv)
	boundTimeouts(h.srv.Members(), time.Hour)
	for _, r := range h.rules {
		r.Remove()
	}
	for _, m := range h.members {
		c := h.srv.Client(m.name)
		c.Heal()
		c.Thaw()
		c.Refuse(false)
		c.ReleaseEvents()
	}
}

func (h *harms) length() time.Duration { return upTo(h.random, h.plan.longest) }

// later ends a fault.
func (h *harms) later(undo func()) { time.AfterFunc(h.length(), undo) }

// forget lets the servers know neither containers nor persistent watches nor requests of several reads.
func (h *harms) forget() {
	if !h.old {
		return
	}
	for _, op := range []fault.Op{fault.OpCreateContainer, fault.OpAddWatch, fault.OpSetWatches2, fault.OpMultiRead} {
		h.srv.On(fault.Match{Op: op, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
	}
}

// action returns what a fault of a request does.
func (h *harms) action(name string) fault.Action {
	switch name {
	case "lost":
		return fault.DropBefore()
	case "answer lost":
		return fault.DropAfter()
	case "late":
		return fault.Delay(h.length())
	}
	return fault.Reset()
}

// aim makes some faults of requests.
func (h *harms) aim(n int) {
	for range n {
		name := h.aims[h.random.IntN(len(h.aims))]
		h.onRequest(h.members[h.random.IntN(len(h.members))], name, h.action(name))
	}
}

// onRequest makes a fault of one of the next requests of a kind that a recipe that takes part sends,
// or of those that any client sends.
func (h *harms) onRequest(m *member, name string, action fault.Action) {
	recipe := h.recipes[h.random.IntN(len(h.recipes))]
	if h.random.IntN(6) == 0 {
		recipe = clients
	}
	request := recipe.requests[h.random.IntN(len(recipe.requests))]
	match := request.match()
	if h.random.IntN(2) == 0 || request.reconnect { // otherwise the request of any client
		match.Client = m.name
	}
	match.Skip = h.random.IntN(3)
	if request.reconnect {
		match.Skip = 0
	}
	h.rules = append(h.rules, aimed{h.srv.On(match, action), cell{recipe.name, request.name, name}})
	if request.reconnect {
		h.srv.Client(m.name).Drop()
	}
}

// count adds the faults that have met a request, and the others.
func (h *harms) count(all *tally) {
	for _, r := range h.rules {
		all.Hits[r.cell] += r.Hits()
		all.Faults += r.Hits()
	}
	for kind, n := range h.made {
		for _, r := range h.recipes {
			all.Hits[cell{r.name, "", kind}] += n
		}
		all.Faults += n
	}
}

// expire ends the sessions of a client.
func (h *harms) expire(c *zktest.Client) {
	for _, session := range c.Sessions() {
		h.checker.takeAway(session.Ephemerals, func() { _ = session.Expire() })
	}
}

// node returns a random node that a recipe has made, or nothing.
func (h *harms) node() string {
	dirs := h.directories()
	if h.has("kept node") {
		dirs = append(dirs, keptPath)
	}
	if h.has("group") {
		dirs = append(dirs, groupPath)
	}
	if h.has("discovery") {
		dirs = append(dirs, ordersPath)
	}
	if len(dirs) == 0 {
		return ""
	}
	dir := dirs[h.random.IntN(len(dirs))]
	names, _ := h.srv.Children(dir)
	names = slices.DeleteFunc(names, func(name string) bool {
		return !isLockNode(dir+"/"+name) && !slices.Contains([]string{keptPath, groupPath, ordersPath}, dir)
	})
	number := func(name string) string { return name[max(0, len(name)-10):] }
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	if len(names) == 0 {
		return ""
	}
	return dir + "/" + names[h.random.IntN(len(names))]
}

func (h *harms) deleteNode() {
	if p := h.node(); p != "" {
		h.checker.takeAway([]string{p}, func() { _ = h.srv.Delete(p) })
	}
}

// changeNode changes the data of a node, as a revocation does.
func (h *harms) changeNode() {
	if p := h.node(); p != "" && !h.kept.isOpen(p) {
		_ = h.srv.Set(p, []byte("__REVOKE__"))
	}
}
