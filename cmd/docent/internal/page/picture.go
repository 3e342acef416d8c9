package page

import (
	"cmp"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/recipes/inspect"
)

// picture is what was below the root when it was read. It does not change.
type picture struct {
	version int64
	root    string
	items   []item // in the order of a walk
	cycles  []inspect.Cycle
	totals  totals

	read time.Time     // when the reading began; zero: never
	took time.Duration // for the reading
	made time.Time     // when the picture was made
	err  error         // why the last attempt to read has failed

	handovers map[string]int // by the directories of nodes that were deleted in the last minute
	counting  time.Time      // since when deletions are counted; zero: they are not

	sessionsOnce sync.Once
	sessionViews []*inspect.SessionView
}

// copy returns a picture of the same nodes.
func (p *picture) copy() *picture {
	return &picture{
		root: p.root, items: p.items, cycles: p.cycles, totals: p.totals, read: p.read, took: p.took,
		err: p.err,
	}
}

// item is one node of the tree that is no part of an object, or an object.
type item struct {
	*inspect.Object
	problem error         // why the node could not be read
	holder  *inspect.Node // the first node that holds; nil: none
	waiting time.Time     // since when the longest waiter waits; zero: none does
}

func newItem(o *inspect.Object, problem error) item {
	i := item{Object: o, problem: problem}
	for at := range o.Nodes {
		switch n := &o.Nodes[at]; {
		case n.Holds && i.holder == nil:
			i.holder = n
		case !n.Holds:
			i.waiting = earlier(i.waiting, n.Since)
		}
	}
	return i
}

// earlier returns the earlier one of two times. The zero Time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// known reports whether the item is an object of a recipe.
func (i item) known() bool {
	return i.problem == nil && i.Kind != inspect.KindUnknown && i.Kind != inspect.KindEmpty
}

func objectsOf(items []item) []*inspect.Object {
	objects := make([]*inspect.Object, 0, len(items))
	for _, i := range items {
		if i.known() {
			objects = append(objects, i.Object)
		}
	}
	return objects
}

// sessions returns what each session holds and waits for.
func (p *picture) sessions() []*inspect.SessionView {
	p.sessionsOnce.Do(func() { p.sessionViews = inspect.Sessions(objectsOf(p.items)) })
	return p.sessionViews
}

// handoversOf returns how often a lock was handed over in the last minute, false for what is not
// handed over.
func (p *picture) handoversOf(o *inspect.Object) (n int, counts bool) {
	switch {
	case p.counting.IsZero():
		return 0, false
	case o.Kind == inspect.KindSemaphore && !slices.Contains(o.Layouts, inspect.LayoutKazoo):
		return p.handovers[path.Join(o.Path, "leases")], true
	case isLock(o.Kind):
		return p.handovers[o.Path], true
	}
	return 0, false
}

func isLock(k inspect.Kind) bool {
	switch k {
	case inspect.KindMutex, inspect.KindRWLock, inspect.KindSemaphore, inspect.KindLatch:
		return true
	}
	return false
}

// totals are numbers of a picture.
type totals struct {
	objects    map[kindState]int
	holders    map[inspect.Kind]int
	waiters    map[inspect.Kind]int
	oldest     map[inspect.Kind]time.Time // since when the longest waiter waits
	warnings   map[inspect.Warning]int
	sessions   int
	known      int // objects of recipes
	problems   int // nodes that could not be read
	warned     int // objects with warnings
	waitedFor  int
	held       int
	abandoned  int
	freeOrElse int
}

type kindState struct {
	kind  inspect.Kind
	state inspect.State
}

// count sets the totals.
func (p *picture) count() {
	t := totals{
		objects: map[kindState]int{}, holders: map[inspect.Kind]int{}, waiters: map[inspect.Kind]int{},
		oldest: map[inspect.Kind]time.Time{}, warnings: map[inspect.Warning]int{},
	}
	sessions := map[inspect.ID]bool{}
	for _, i := range p.items {
		if i.problem != nil {
			t.problems++
		}
		if !i.known() {
			continue
		}
		t.known++
		for at := range i.Nodes {
			if id := i.Nodes[at].Session; id != 0 {
				sessions[id] = true
			}
		}
		t.objects[kindState{i.Kind, i.State}]++
		t.holders[i.Kind] += i.Holders
		t.waiters[i.Kind] += i.Waiters
		t.oldest[i.Kind] = earlier(t.oldest[i.Kind], i.waiting)
		for _, w := range i.Warnings {
			t.warnings[w]++
		}
		if len(i.Warnings) > 0 {
			t.warned++
		}
		switch i.State {
		case inspect.StateHeld:
			t.held++
		case inspect.StateWaitedFor:
			t.waitedFor++
		case inspect.StateAbandoned:
			t.abandoned++
		default:
			t.freeOrElse++
		}
	}
	t.sessions = len(sessions)
	p.totals = t
}

// find returns the item at a path.
func (p *picture) find(path string) (item, bool) {
	at, ok := slices.BinarySearchFunc(p.items, path, comparePath)
	if !ok {
		return item{}, false
	}
	return p.items[at], true
}

func comparePath(i item, path string) int { return compareAsWalked(i.Path, path) }

// compareAsWalked orders paths as a walk does: a node before those below it, siblings by name.
func compareAsWalked(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		switch byte('/') {
		case a[i]:
			return -1
		case b[i]:
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}

// within reports whether a node is at or below another one.
func within(path, ancestor string) bool {
	return path == ancestor || ancestor == "/" || strings.HasPrefix(path, ancestor+"/")
}

// span returns which items are at and below a path.
func span(items []item, path string) (from, to int) {
	from, _ = slices.BinarySearchFunc(items, path, comparePath)
	rest := items[from:]
	return from, from + sort.Search(len(rest), func(i int) bool { return !within(rest[i].Path, path) })
}

// replaced returns items with others at and below a path.
func replaced(items []item, path string, others []item) []item {
	from, to := span(items, path)
	return slices.Concat(items[:from], others, items[to:])
}

const (
	// maxSteps is how many nodes and subtrees are read one after another. If there are more, the whole
	// tree is read, whose reads share requests.
	maxSteps = 64
	// fewBelow is the size of a subtree that is read again for a change of its root.
	fewBelow = 100
)

// plan is what to read after changes.
type plan struct {
	all    bool
	trees  map[string]bool // subtrees
	single map[string]bool // nodes alone; if one is another kind of object now, its subtree
}

// planFor returns what to read after changes of nodes.
func (p *picture) planFor(changed map[string]bool) plan {
	todo := plan{trees: map[string]bool{}, single: map[string]bool{}}
	for path := range changed {
		p.add(&todo, path)
		if todo.all || len(todo.trees)+len(todo.single) > 4*maxSteps {
			return plan{all: true}
		}
	}
	todo.all = todo.trees[p.root] || len(todo.trees)+len(todo.single) > maxSteps
	return todo
}

// add adds to a plan what the change of one node can change. What a node is depends on its children,
// and on theirs if they are the directories of some recipes.
func (p *picture) add(todo *plan, changed string) {
	chain := []string{changed}
	if changed != p.root {
		parent := path.Dir(changed)
		chain = append(chain, parent)
		if name := path.Base(parent); parent != p.root && (partDirs[name] || partDirs[path.Base(changed)]) {
			chain = append(chain, path.Dir(parent))
		}
	}
	for _, node := range slices.Backward(chain) {
		above, ok := p.nearest(node)
		if !ok {
			todo.all = true
			return
		}
		from, to := span(p.items, above.Path)
		if to-from <= fewBelow || above.known() { // then node may be a part of it
			todo.trees[above.Path] = true
			return
		}
		todo.single[above.Path] = true
	}
	todo.trees[changed] = true
}

// roots returns the subtrees of a plan that are not below another one.
func (todo plan) roots() (roots []string) {
	for root := range todo.trees {
		if !belowOther(root, todo.trees) {
			roots = append(roots, root)
		}
	}
	return roots
}

// partDirs are the names of children by whose children objects are recognized.
var partDirs = map[string]bool{"leases": true, "locks": true, "programs": true, "ready": true}

// nearest returns the item at a path or the next one above.
func (p *picture) nearest(node string) (item, bool) {
	for {
		if i, ok := p.find(node); ok || node == p.root || node == "/" {
			return i, ok
		}
		node = path.Dir(node)
	}
}

func belowOther(root string, set map[string]bool) bool {
	for root != "/" {
		if root = path.Dir(root); set[root] {
			return true
		}
	}
	return false
}
