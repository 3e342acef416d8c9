package inspect

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// The endings of the names of lock nodes, before the number.
const (
	lockMark  = "lock-"
	readMark  = "__READ__"
	writeMark = "__WRIT__"
	latchMark = "latch-"
	leaseMark = "lease-"
	kazooLock = queue.KazooLock
	kazooRead = queue.KazooReadLock
	pinMark   = "limit-" // docent keeps the directory of permits with such a node for a moment
)

// family is the nodes of one kind of queue. A node waits for those ahead whose endings waitsFor has.
type family struct {
	kind     Kind
	proof    []string // one of these endings shows that a queue is of this family
	roles    map[string]Role
	waitsFor map[string][]string
}

var (
	exclusive = []string{lockMark, kazooLock}
	anySide   = []string{writeMark, readMark, kazooLock, kazooRead}
	aWriter   = []string{writeMark, kazooLock}
)

// families are the kinds of queues. The first one that a directory shows counts. A new kind of queue
// is a line here.
var families = []family{
	{
		KindRWLock, []string{writeMark, readMark, kazooRead},
		map[string]Role{writeMark: RoleWriter, kazooLock: RoleWriter, readMark: RoleReader, kazooRead: RoleReader},
		map[string][]string{writeMark: anySide, kazooLock: anySide, readMark: aWriter, kazooRead: aWriter},
	},
	{
		KindMutex, exclusive,
		map[string]Role{lockMark: RoleLock, kazooLock: RoleLock},
		map[string][]string{lockMark: exclusive, kazooLock: exclusive},
	},
	{
		KindLatch, []string{latchMark},
		map[string]Role{latchMark: RoleCandidate},
		map[string][]string{latchMark: {latchMark}},
	},
	{
		KindSemaphore, []string{leaseMark}, // its permits; the waiters are a mutex
		map[string]Role{leaseMark: RolePermit},
		map[string][]string{leaseMark: nil},
	},
}

// marks are the endings of all families.
var marks = []string{lockMark, readMark, writeMark, latchMark, leaseMark, kazooLock, kazooRead}

// ending matches the end of a name that a server has made: the number has ten digits, or nine and a
// sign, or more.
var ending = regexp.MustCompile(`(` + strings.Join(marks, "|") + `)-?[0-9]{9,10}$`)

// The beginnings of names, before the ending, of the known programs.
var beginnings = []struct {
	layout Layout
	match  *regexp.Regexp
}{
	{LayoutCurator, regexp.MustCompile(
		`^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-(slot-[0-9]+-)?$`)},
	{LayoutGoZooKeeper, regexp.MustCompile(`^_c_[0-9a-f]{32}-$`)},
	{LayoutKazoo, regexp.MustCompile(`^[0-9a-f]{32}-?$`)},
}

// queued is a node of a queue.
type queued struct {
	locknode.Node
	mark   string
	layout Layout
	ahead  int
}

// kazoo reports whether the ending is kazoo's.
func (q queued) kazoo() bool { return q.mark == kazooLock || q.mark == kazooRead }

// parseQueued returns the node of a queue that a name is, false for other names.
func parseQueued(name string) (queued, bool) {
	at := ending.FindStringSubmatchIndex(name)
	if at == nil {
		return queued{}, false
	}
	q := queued{mark: name[at[2]:at[3]], layout: LayoutOther}
	node, ok := locknode.Parse(name, []string{q.mark})
	if !ok {
		return queued{}, false // the number has more than 32 bits
	}
	q.Node = node
	for _, b := range beginnings {
		if b.match.MatchString(name[:at[0]]) {
			q.layout = b.layout
		}
	}
	if q.kazoo() && q.layout == LayoutCurator {
		q.layout = LayoutDocent // WithKazooNames
	}
	return q, true
}

// queueShape is the queue in a directory, as the names show it.
type queueShape struct {
	family    *family
	nodes     []queued // in order, as far as the numbers show it
	others    []string // children that are not of the queue
	mixed     bool     // others has nodes of another family
	unordered bool     // the numbers do not show the order
}

// shapeOf returns the queue among the names of children, nil if there is none.
func shapeOf(names []string) *queueShape {
	present := map[string]bool{}
	var all []queued
	for _, name := range names {
		if q, ok := parseQueued(name); ok {
			all, present[q.mark] = append(all, q), true
		}
	}
	s := &queueShape{}
	for i := range families {
		if slices.ContainsFunc(families[i].proof, func(mark string) bool { return present[mark] }) {
			s.family = &families[i]
			break
		}
	}
	if s.family == nil {
		return nil
	}
	member := map[string]bool{}
	for _, q := range all {
		if _, of := s.family.roles[q.mark]; !of {
			s.mixed = true
			continue
		}
		s.nodes, member[q.Name] = append(s.nodes, q), true
		s.unordered = s.unordered || q.AtCounterEnd()
	}
	for _, name := range names {
		if !member[name] {
			s.others = append(s.others, name)
		}
	}
	slices.SortFunc(s.nodes, compare)
	return s
}

// compare orders nodes by number. Of a writer and the reader beside it the writer is the first.
func compare(a, b queued) int {
	if a.Seq == b.Seq && a.mark != b.mark {
		return cmp.Compare(b.mark, a.mark)
	}
	return locknode.Compare(a.Node, b.Node)
}

// first returns the names of the first n nodes.
func (s *queueShape) first(n int) []string {
	names := make([]string, 0, min(n, len(s.nodes)))
	for _, q := range s.nodes[:min(n, len(s.nodes))] {
		names = append(names, q.Name)
	}
	return names
}

// has reports whether a child is a node of the queue.
func (s *queueShape) has(name string) bool {
	q, ok := parseQueued(name)
	if !ok {
		return false
	}
	_, of := s.family.roles[q.mark]
	return of
}

// order sorts nodes that were read by their transactions, where the numbers do not show the order.
// Those that were not read stay at the end.
func (s *queueShape) order(kids map[string]*znode) {
	token := func(q queued) int64 {
		if kid := kids[q.Name]; kid != nil && kid.stat != nil {
			return kid.stat.Czxid
		}
		return math.MaxInt64
	}
	slices.SortStableFunc(s.nodes, func(a, b queued) int { return cmp.Compare(token(a), token(b)) })
}

// count sets for each node how many conflicting ones are ahead. Nodes with equal numbers have one
// place: a reader beside the writer of the same client.
func (s *queueShape) count() {
	ahead := map[string]int{}
	for i := 0; i < len(s.nodes); {
		end := i + 1
		for end < len(s.nodes) && s.nodes[end].Seq == s.nodes[i].Seq && !s.nodes[i].AtCounterEnd() {
			end++
		}
		for k := i; k < end; k++ {
			for _, mark := range s.family.waitsFor[s.nodes[k].mark] {
				s.nodes[k].ahead += ahead[mark]
			}
		}
		for ; i < end; i++ {
			ahead[s.nodes[i].mark]++
		}
	}
}

// fill adds the queue in d to an object.
func (s *queueShape) fill(o *Object, d *dir, maxNodes int) {
	if s.unordered {
		s.order(d.kids)
	}
	for i := range s.nodes {
		s.nodes[i].ahead = 0
	}
	s.count()
	since := lastCreation(d)
	known, endings := true, map[bool]bool{}
	for _, q := range s.nodes {
		endings[q.kazoo()] = true
		holds := q.ahead == 0
		if holds {
			o.Holders++
		} else {
			o.Waiters++
		}
		if q.Seq < 0 || q.Seq > math.MaxInt32/2 {
			o.warn(WarnSequence)
		}
		o.layout(q.layout)
		known = known && q.layout != LayoutOther
		kid := d.kids[q.Name]
		if kid == nil || len(o.Nodes) == maxNodes {
			o.Unread++
			continue
		}
		n := nodeOf(kid, s.family.roles[q.mark])
		n.Layout, n.Holds, n.Ahead, n.kind = q.layout, holds, q.ahead, q.mark
		if holds && kid.stat != nil {
			n.HeldSince = since
		}
		if kid.stat != nil && kid.stat.EphemeralOwner == 0 {
			o.warn(WarnPersistent)
		}
		o.Nodes = append(o.Nodes, n)
	}
	o.Foreign += len(s.others)
	if len(endings) == 2 {
		o.warn(WarnMixedLayouts)
	}
	if s.mixed {
		o.warn(WarnMixedRecipes)
	}
	if len(s.others) > 0 {
		o.warn(WarnForeign)
	}
	o.Sure = o.Sure && known
}

// lastCreation returns when the last child of a directory was created, if that one was read and no
// child was deleted since: see recipes.Participant.HeldSince. Otherwise it returns the zero Time.
func lastCreation(d *dir) time.Time {
	for _, kid := range d.kids {
		if kid.stat != nil && kid.stat.Czxid == d.stat.Pzxid {
			return time.UnixMilli(kid.stat.Ctime)
		}
	}
	return time.Time{}
}
