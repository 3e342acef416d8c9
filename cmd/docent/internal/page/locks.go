package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/recipes/inspect"
)

// rowsPerPage is how many rows a page has. More are on other pages, so that 10,000 locks are no more
// work for a browser than a hundred.
const rowsPerPage = 100

// choice is a choice of a list in a form.
type choice struct{ Value, Text string }

// The values of the filter by state that are no states.
const (
	inUse  = ""
	warned = "warnings"
)

var stateChoices = []choice{
	{inUse, "in use"}, {string(inspect.StateHeld), "held"}, {string(inspect.StateWaitedFor), "waited for"},
	{string(inspect.StateAbandoned), "abandoned"}, {string(inspect.StateFree), "free"},
	{string(inspect.StateOpen), "open"}, {string(inspect.StateClosed), "closed"}, {warned, "with warnings"},
}

var kindChoices = []choice{
	{"", "all kinds"}, {string(inspect.KindMutex), "mutex"}, {string(inspect.KindRWLock), "rwlock"},
	{string(inspect.KindSemaphore), "semaphore"}, {string(inspect.KindLatch), "latch"},
	{string(inspect.KindStriped), "striped"}, {string(inspect.KindCondition), "condition"},
	{string(inspect.KindBarrier), "barrier"}, {string(inspect.KindDoubleBarrier), "double barrier"},
	{string(inspect.KindCyclicBarrier), "cyclic barrier"}, {string(inspect.KindCountDown), "count-down"},
	{string(inspect.KindGroup), "group"}, {string(inspect.KindService), "service"},
	{string(inspect.KindCount), "count"}, {string(inspect.KindAtomic), "atomic"},
	{string(inspect.KindValue), "value"}, {string(inspect.KindTermRecord), "term record"},
}

var sortChoices = []choice{
	{"", "path"}, {"wait", "longest wait"}, {"waiters", "waiters"}, {"age", "age"}, {"handovers", "hand-overs"},
}

// filter is which locks to show, in which order.
type filter struct {
	Words string
	State string
	Kind  string
	Sort  string
	Page  int // from 1
}

func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	page, _ := strconv.Atoi(q.Get("page"))
	return filter{q.Get("q"), q.Get("state"), q.Get("kind"), q.Get("sort"), max(1, page)}
}

// Link returns the address of the page with this filter.
func (f filter) Link() string {
	q := url.Values{}
	for name, value := range map[string]string{"q": f.Words, "state": f.State, "kind": f.Kind, "sort": f.Sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Page > 1 {
		q.Set("page", strconv.Itoa(f.Page))
	}
	return "?" + q.Encode()
}

// By returns the address of the page in another order.
func (f filter) By(sort string) string {
	f.Sort, f.Page = sort, 1
	return f.Link()
}

// To returns the address of another part of the list.
func (f filter) To(page int) string {
	f.Page = page
	return f.Link()
}

// lockRow is an object in a list.
type lockRow struct {
	item
	Handovers int
	Counts    bool // it is an object that is handed over
}

// Holder returns the first node that holds, nil if there is none.
func (l lockRow) Holder() *inspect.Node { return l.holder }

// age returns since when the node of the holder exists; the zero Time if there is no holder.
func (l lockRow) age() time.Time {
	if l.holder == nil {
		return time.Time{}
	}
	return l.holder.Since
}

// Waiting returns since when the longest waiter waits.
func (l lockRow) Waiting() time.Time { return l.waiting }

// More returns the number of holders but the first.
func (l lockRow) More() int { return max(0, l.Holders-1) }

// pager is a part of a list.
type pager struct {
	From, To, Of int
	Earlier      string // the address of the part before; "": there is none
	Later        string
}

// part returns the part of all that a page shows.
func part[T any](all []T, page int, link func(int) string) ([]T, pager) {
	page = min(page, max(1, (len(all)+rowsPerPage-1)/rowsPerPage))
	from := (page - 1) * rowsPerPage
	to := min(from+rowsPerPage, len(all))
	p := pager{From: min(from+1, to), To: to, Of: len(all)}
	if page > 1 {
		p.Earlier = link(page - 1)
	}
	if to < len(all) {
		p.Later = link(page + 1)
	}
	return all[from:to], p
}

type locksPage struct {
	layout
	Filter                   filter
	Pager                    pager
	Rows                     []lockRow
	States, Kinds, Sorts     []choice
	Known, Held, Waited      int
	Abandoned, Warned, Wrong int
	Problems                 []problem
	Missing                  bool // there is no root
}

// problem is a node that could not be read.
type problem struct{ Path, Text string }

// maxProblems is how many problems are shown.
const maxProblems = 50

func (p *Page) showLocks(w http.ResponseWriter, r *http.Request) {
	l := p.layout(r, "Locks", "locks")
	f, now := filterOf(r), l.picture
	shown, pager := part(f.apply(now), f.Page, f.To)
	page := locksPage{
		layout: l, Filter: f, Pager: pager, Rows: shown, States: stateChoices, Kinds: kindChoices, Sorts: sortChoices,
		Known: now.totals.known, Held: now.totals.held, Waited: now.totals.waitedFor,
		Abandoned: now.totals.abandoned, Warned: now.totals.warned, Wrong: now.totals.problems,
		Missing: !now.read.IsZero() && len(now.items) == 0,
	}
	if page.Wrong > 0 {
		page.Problems = problemsOf(now.items)
	}
	p.render(w, http.StatusOK, "locks", page)
}

func problemsOf(items []item) (all []problem) {
	for _, i := range items {
		if i.problem != nil && len(all) < maxProblems {
			all = append(all, problem{i.Path, i.problem.Error()})
		}
	}
	return all
}

// apply returns what the filter selects, in its order.
func (f filter) apply(now *picture) (rows []lockRow) {
	words := strings.Fields(strings.ToLower(f.Words))
	for _, i := range now.items {
		if !f.selects(i) || !matches(i.Object, words) {
			continue
		}
		row := lockRow{item: i}
		row.Handovers, row.Counts = now.handoversOf(i.Object)
		rows = append(rows, row)
	}
	if order := f.order(); order != nil {
		slices.SortStableFunc(rows, order)
	}
	return rows
}

func (f filter) selects(i item) bool {
	if i.problem != nil || f.Kind != "" && f.Kind != string(i.Kind) {
		return false
	}
	switch f.State {
	case inUse:
		return i.known()
	case warned:
		return len(i.Warnings) > 0
	}
	return string(i.State) == f.State
}

// order returns how rows are sorted; nil: by path, as they are.
func (f filter) order() func(a, b lockRow) int {
	switch f.Sort {
	case "waiters":
		return func(a, b lockRow) int { return cmp.Compare(b.Waiters, a.Waiters) }
	case "handovers":
		return func(a, b lockRow) int { return cmp.Compare(b.Handovers, a.Handovers) }
	case "wait":
		return func(a, b lockRow) int { return compareOldest(a.waiting, b.waiting) }
	case "age":
		return func(a, b lockRow) int { return compareOldest(a.age(), b.age()) }
	}
	return nil
}

// matches reports whether an object has all words, in lower case: in its path, its data, or what is
// known of its nodes.
func matches(o *inspect.Object, words []string) bool {
	for _, word := range words {
		has := func(text string) bool { return strings.Contains(strings.ToLower(text), word) }
		ofNode := func(n inspect.Node) bool {
			return has(nameOf(&n)) || has(n.Data) || has(n.Path) || n.Session != 0 && has(n.Session.String())
		}
		if !has(o.Path) && !has(o.Data) && !slices.ContainsFunc(o.Nodes, ofNode) {
			return false
		}
	}
	return true
}
