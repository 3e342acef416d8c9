package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest"
)

// plan is what the seed decides before a run: the recipes that take part, the kinds of faults and
// their weights, and the servers. Each run has some of each only. Faults and recipes hide each other:
// a client that is always cut off soon never uses a lock for long.
type plan struct {
	recipes []*recipe
	faults  []harm   // a kind that is there twice comes twice as often
	number  int      // of faults
	aims    []string // the kinds of faults of requests
	aimed   int      // number of these
	pause   time.Duration
	longest time.Duration // of one fault

	members int // clients
	workers int // goroutines of each client
	turns   int // of each worker

	followers int
	lag       time.Duration
	compat    zktest.Compat
	tick      time.Duration
	reap      time.Duration // interval in which containers are deleted

	restless bool // clients move from server to server all the time
	old      bool // the servers know neither containers nor persistent watches
	foreign  bool // the locks' paths have data and other children
	ending   bool // the sequence counters of the paths are near their end
	auth     bool // clients authenticate
	closing  bool // clients are closed and replaced
}

func newPlan(random *rand.Rand) plan {
	few := []int{1, 1, 2, 2, 3, 4, 6, len(allRecipes)}
	p := plan{
		recipes: some(random, allRecipes, few[random.IntN(len(few))]),
		number:  3 + random.IntN(10),
		aims:    some(random, requestHarms, 1+random.IntN(len(requestHarms))),
		aimed:   choose(random, 0, 3, 10, 30),
		pause:   choose(random, 200*time.Millisecond, time.Second, 2*time.Second),
		longest: choose(random, sessionTimeout/4, sessionTimeout, 3*sessionTimeout),
		members: 2 + random.IntN(2), workers: 1 + random.IntN(3), turns: 2 + random.IntN(5),
		followers: choose(random, 0, 0, 1, 2),
		lag:       choose(random, 5*time.Millisecond, 50*time.Millisecond, time.Second),
		compat:    choose(random, zktest.V39, zktest.V39, zktest.V38),
		tick:      choose(random, 100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond),
		reap:      choose(random, 300*time.Millisecond, time.Second, time.Hour),
		restless:  random.IntN(8) == 0,
		old:       random.IntN(8) == 0,
		foreign:   random.IntN(8) == 0,
		ending:    random.IntN(8) == 0,
		auth:      random.IntN(6) == 0,
	}
	for _, h := range some(random, harmKinds, 1+random.IntN(6)) {
		p.faults = append(p.faults, slices.Repeat([]harm{h}, 1+random.IntN(4))...)
		p.closing = p.closing || h.name == "client closed"
	}
	return p
}

// options returns the options of the server.
func (p plan) options() []zktest.Option {
	return []zktest.Option{
		zktest.WithCompat(p.compat), zktest.WithTick(p.tick),
		zktest.WithConfig("znode.container.checkIntervalMs", fmt.Sprint(p.reap.Milliseconds())),
	}
}

func (p plan) has(name string) bool {
	return slices.ContainsFunc(p.recipes, func(r *recipe) bool { return r.name == name })
}

func (p plan) hasFault(name string) bool {
	return slices.ContainsFunc(p.faults, func(h harm) bool { return h.name == name })
}

// menu returns the actions of the recipes that take part.
func (p plan) menu() (menu []action) {
	for _, r := range p.recipes {
		menu = append(menu, r.actions...)
	}
	if len(menu) == 0 {
		menu = []action{{"nothing", func(*worker, *locks) error { return nil }}}
	}
	return menu
}

// directories returns the paths of all directories with lock nodes.
func (p plan) directories() (all []string) {
	for _, r := range p.recipes {
		for _, dir := range r.queues {
			if !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}

// some returns n of all, in their order.
func some[T any](random *rand.Rand, all []T, n int) (chosen []T) {
	n = min(n, len(all))
	picked := random.Perm(len(all))[:n]
	slices.Sort(picked)
	for _, i := range picked {
		chosen = append(chosen, all[i])
	}
	return chosen
}

func choose[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// String describes the plan of a run that has failed.
func (p plan) String() string {
	var names, kinds []string
	for _, r := range p.recipes {
		names = append(names, r.name)
	}
	for _, h := range p.faults {
		kinds = append(kinds, h.name)
	}
	return fmt.Sprintf("recipes: %s\nfaults: %d, up to %v apart and %v long, of %s; %d of requests: %s\n"+
		"%d clients with %d goroutines, %d turns each; %d followers that lag %v; version %v, tick %v, reaping %v\n"+
		"restless %v, old servers %v, foreign nodes %v, ending %v, auth %v",
		strings.Join(names, ", "), p.number, p.pause, p.longest, strings.Join(kinds, ", "),
		p.aimed, strings.Join(p.aims, ", "),
		p.members, p.workers, p.turns, p.followers, p.lag, p.compat, p.tick, p.reap,
		p.restless, p.old, p.foreign, p.ending, p.auth)
}
