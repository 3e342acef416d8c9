package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

// maxPaths is how many paths a finding has at most.
const maxPaths = 20

// suspect is something that is wrong with locks.
type suspect struct {
	check  string
	result Result
	what   string // after the number of objects
	advice string
}

var (
	pastEnd = &suspect{
		"sequence numbers", Fail, "directories whose sequence numbers are beyond 2^31, the end of their range",
		"stop the programs, and delete the directory: Curator and kazoo do not exclude each other there",
	}
	nearEnd = &suspect{
		"sequence numbers", Warn, "directories whose sequence numbers are beyond 2^30, half of their range",
		"delete the directory while no program uses the lock, so that the numbers begin again: beyond 2^31 Curator " +
			"and kazoo do not exclude each other",
	}
	mixedLayouts = &suspect{
		"layouts", Fail, "locks with nodes of Curator's and of kazoo's names in one queue",
		"let all programs use one layout: see docs/migration.md",
	}
	mixedRecipes = &suspect{
		"layouts", Fail, "directories with nodes of two kinds of locks, which do not exclude each other",
		"give each kind of lock a path of its own",
	}
	mixedSemaphore = &suspect{
		"layouts", Warn, "locks with the nodes of a semaphore, too, and the two kinds do not exclude each other",
		"let all programs use the same kind of lock on a path",
	}
	foreign = &suspect{
		"layouts", Warn, "locks with children that are not lock nodes",
		"move them elsewhere: Curator counts them as waiters or as permits",
	}
	abandoned = &suspect{
		"abandoned locks", Fail, "locks whose holder's node belongs to no session",
		"see which program made the node, and delete it: nothing else will",
	}
	persistent = &suspect{
		"abandoned locks", Warn, "locks with nodes that belong to no session",
		"see which program made them, and delete them: no end of a session does",
	}
	overLimit = &suspect{
		"semaphores", Warn, "semaphores with more permits held than their limit allows",
		"wait for the holders, if the limit has been lowered",
	}
	unreadable = &suspect{
		"permissions", Warn, "nodes that could not be read", "give credentials with which they can be read",
	}
)

// suspects are all, in the order of the reports.
var suspects = []*suspect{
	pastEnd, nearEnd, mixedLayouts, mixedRecipes, mixedSemaphore, foreign, abandoned, persistent, overLimit, unreadable,
}

// warnings are the suspects that package inspect finds.
var warnings = map[inspect.Warning]*suspect{
	inspect.WarnMixedLayouts: mixedLayouts,
	inspect.WarnMixedRecipes: mixedRecipes,
	inspect.WarnForeign:      foreign,
	inspect.WarnPersistent:   persistent,
	inspect.WarnOverLimit:    overLimit,
}

// patient is the state of a walk.
type patient struct {
	*examination
	paths   map[*suspect][]string
	batch   []string // directories whose sequence numbers are still to be read
	objects int
}

// batchSize is how many directories are read in one request.
const batchSize = 100

// tree examines the locks at and below Root.
func (e *examination) tree(ctx context.Context) {
	const check = "locks"
	t := &patient{examination: e, paths: map[*suspect][]string{}}
	err := t.walk(ctx)
	if err == nil {
		err = t.sequences(ctx)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		e.fail(check, err.Error(), "name a node that exists")
		return
	case errors.Is(err, inspect.ErrLimit):
		e.warn(check, fmt.Sprintf("%s has more than %d nodes, and not all were read", e.Root, e.MaxNodes),
			"name a root further down, or raise --max-nodes")
	case err != nil:
		e.fail(check, err.Error(), "see whether the servers answer")
	default:
		e.ok(check, fmt.Sprintf("%d objects at and below %s", t.objects, e.Root))
	}
	t.reportSuspects(err == nil)
}

// walk looks at all objects.
func (t *patient) walk(ctx context.Context) error {
	for o, err := range inspect.Walk(ctx, t.Client, t.Root, inspect.WithAll(), inspect.WithLimit(t.MaxNodes)) {
		switch {
		case o == nil:
			return err
		case err != nil:
			t.add(unreadable, o.Path)
			continue
		}
		if err := t.look(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// look looks at one object.
func (t *patient) look(ctx context.Context, o *inspect.Object) error {
	if o.Kind != inspect.KindUnknown && o.Kind != inspect.KindEmpty {
		t.objects++
	}
	for _, w := range o.Warnings {
		s, known := warnings[w]
		switch {
		case s == foreign:
			t.lookAtForeign(ctx, o)
		case known:
			t.add(s, o.Path)
		}
	}
	if o.State == inspect.StateAbandoned {
		t.add(abandoned, o.Path)
	}
	if slices.ContainsFunc(o.Nodes, pastTheEnd) {
		t.add(pastEnd, o.Path)
		return nil
	}
	switch o.Kind {
	case inspect.KindSemaphore:
		t.batch = append(t.batch, o.Path, o.Path+"/locks", o.Path+"/leases")
	default:
		t.batch = append(t.batch, o.Path)
	}
	if len(t.batch) < batchSize {
		return nil
	}
	return t.sequences(ctx)
}

// lookAtForeign tells the directories of a semaphore, which another kind of lock does not count as its
// own, from other foreign children.
func (t *patient) lookAtForeign(ctx context.Context, o *inspect.Object) {
	names, _, err := t.Client.Children(ctx, o.Path)
	if err != nil || o.Kind == inspect.KindSemaphore || !slices.Contains(names, "leases") {
		t.add(foreign, o.Path)
		return
	}
	t.add(mixedSemaphore, o.Path)
	if o.Foreign > 2 || o.Foreign == 2 && !slices.Contains(names, "locks") {
		t.add(foreign, o.Path)
	}
}

func (t *patient) add(s *suspect, path string) { t.paths[s] = append(t.paths[s], path) }

// lastNumber matches the name of a node whose number is at or beyond the end of its range.
var lastNumber = regexp.MustCompile(`(lock-|latch-|lease-|__)(2147483647|-[0-9]{9,10})$`)

func pastTheEnd(n inspect.Node) bool { return lastNumber.MatchString(n.Path) }

// sequences reads how many children the directories of the batch have had.
func (t *patient) sequences(ctx context.Context) error {
	paths := t.batch
	t.batch = nil
	stats, err := t.stats(ctx, paths)
	if err != nil {
		return err
	}
	for i, stat := range stats {
		if stat != nil && created(stat) > math.MaxInt32/2 {
			t.add(nearEnd, paths[i])
		}
	}
	return nil
}

// created returns the number of children that a node has had, which is the next sequence number. From
// 2^31 on it is too low by 2^31. Cversion counts creations and deletions, and so says twice that less
// the children that are there.
func created(stat *zk.Stat) int64 { return int64(uint32(stat.Cversion+stat.NumChildren) / 2) }

// stats returns the Stat of each path, nil for a node that is not there or may not be read.
func (t *patient) stats(ctx context.Context, paths []string) ([]*zk.Stat, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	reads := make([]framework.ReadOp, len(paths))
	for i, path := range paths {
		reads[i] = framework.GetOp(path)
	}
	results, err := t.Client.MultiRead(ctx, reads...)
	stats := make([]*zk.Stat, len(paths))
	for i, r := range results {
		stats[i] = r.Stat
	}
	if !errors.Is(err, framework.ErrUnimplemented) {
		return stats, err
	}
	for i, path := range paths {
		stats[i], err = t.Client.Exists(ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
			return nil, err
		}
	}
	return stats, nil
}

// reportSuspects reports what is wrong, and what is not if all was read.
func (t *patient) reportSuspects(complete bool) {
	found := map[string]bool{}
	for _, s := range suspects {
		found[s.check] = found[s.check] || len(t.paths[s]) > 0
	}
	for _, s := range suspects {
		paths := t.paths[s]
		switch {
		case len(paths) > 0:
			t.report(Finding{
				Check: s.check, Result: s.result, Advice: s.advice, Paths: paths[:min(len(paths), maxPaths)],
				Found: fmt.Sprintf("%d %s", len(paths), s.what),
			})
		case !found[s.check] && complete:
			found[s.check] = true
			t.ok(s.check, "nothing found")
		}
	}
}
