package inspect

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// The recognizers of recipes that only docent has, and of nodes that only docent adds to those of
// others.

// programsDir is the directory of the programs that use a striped lock.
const programsDir = "programs"

const guidName = `^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-`

var (
	markerNode  = regexp.MustCompile(guidName + `marker--?[0-9]{9,10}$`)
	waitNode    = regexp.MustCompile(guidName + `wait--?[0-9]{9,10}$`)
	signalNode  = regexp.MustCompile(`^(signal--?[0-9]+-.+|all--?[0-9]+)$`)
	programNode = regexp.MustCompile(guidName + `stripes-([0-9]+)-([0-9]+-)?-?[0-9]{9,10}$`)
)

// choose adds the children of d that were read and match, sorted by name, and returns their names.
// Those that were not read count as unread if their names match.
func (o *Object) choose(d *dir, role Role, maxNodes int, match *regexp.Regexp) (names map[string]bool) {
	names = map[string]bool{}
	for _, name := range d.names {
		kid := d.kids[name]
		if !match.MatchString(name) || kid != nil && (kid.stat == nil || kid.stat.EphemeralOwner == 0) {
			continue
		}
		names[name] = true
		o.Holders++
		if kid == nil || len(o.Nodes) == maxNodes {
			o.Unread++
			continue
		}
		n := nodeOf(kid, role)
		n.Layout, n.Holds, n.HeldSince = LayoutDocent, true, n.Since
		o.Nodes = append(o.Nodes, n)
	}
	return names
}

// wait has all nodes wait.
func (o *Object) wait() {
	o.Holders, o.Waiters = 0, o.Holders
	for i := range o.Nodes {
		o.Nodes[i].Holds, o.Nodes[i].HeldSince = false, time.Time{}
	}
	o.State = StateFree
	if o.Waiters > 0 {
		o.State = StateWaitedFor
	}
}

// owned returns what a child must be to be a part of the object.
func owned(names map[string]bool) func(string) bool {
	return func(name string) bool { return names[name] }
}

// isMarked recognizes a counter while a client of docent updates it.
func isMarked(w *walker, d *dir, o *Object) *found {
	names := o.choose(d, RoleUpdater, w.cfg.maxNodes, markerNode)
	if len(names) == 0 {
		return nil
	}
	for kind, size := range map[Kind]int{KindCount: 4, KindAtomic: 8} {
		if value, ok := number(d.data, size); ok && text(d.data) == "" {
			o.Kind, o.Value = kind, &value
		}
	}
	o.Sure, o.Foreign = true, len(d.names)-len(names)
	o.layout(LayoutDocent)
	return &found{owns: owned(names)}
}

func isCyclicBarrier(w *walker, d *dir, o *Object) *found {
	var cycle struct {
		Parties    int64     `json:"parties"`
		Generation *int64    `json:"generation"`
		Passed     *[]string `json:"passed"`
	}
	if json.Unmarshal(d.data, &cycle) != nil || cycle.Parties <= 0 || cycle.Generation == nil || cycle.Passed == nil {
		return nil
	}
	prefix := regexp.QuoteMeta(strconv.FormatInt(*cycle.Generation, 10) + "-")
	names := o.choose(d, RoleMember, w.cfg.maxNodes, regexp.MustCompile("^"+prefix))
	o.wait()
	o.Sure, o.Limit, o.Value, o.Foreign = true, &cycle.Parties, cycle.Generation, len(d.names)-len(names)
	o.layout(LayoutDocent)
	return &found{owns: owned(names)}
}

func isCountDown(_ *walker, d *dir, o *Object) *found {
	var latch struct {
		Count int64 `json:"count"`
		Open  bool  `json:"open"`
	}
	decoder := json.NewDecoder(bytes.NewReader(d.data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&latch) != nil || latch.Count <= 0 || d.stat.EphemeralOwner != 0 {
		return nil
	}
	prefix := strconv.FormatInt(d.stat.Czxid, 16) + "-" // of the counts of this incarnation
	counts := map[string]bool{}
	for _, name := range d.names {
		if strings.HasPrefix(name, prefix) {
			counts[name] = true
		}
	}
	missing := max(0, latch.Count-int64(len(counts)))
	o.State = StateClosed
	if latch.Open || missing == 0 {
		o.State, missing = StateOpen, 0
	}
	o.Sure, o.Limit, o.Value, o.Foreign = len(counts) > 0, &latch.Count, &missing, len(d.names)-len(counts)
	o.layout(LayoutDocent)
	return &found{owns: owned(counts)}
}

func isCondition(w *walker, d *dir, o *Object) *found {
	names := o.choose(d, RoleWaiter, w.cfg.maxNodes, waitNode)
	if len(names) == 0 {
		return nil
	}
	o.wait()
	slices.SortFunc(o.Nodes, func(a, b Node) int { return locknode.Compare(waiterOf(a), waiterOf(b)) })
	for i := range o.Nodes {
		o.Nodes[i].Ahead = i
	}
	for _, name := range d.names {
		if signalNode.MatchString(name) {
			names[name] = true
		}
	}
	o.Sure, o.Foreign = true, len(d.names)-len(names)
	o.layout(LayoutDocent)
	return &found{owns: owned(names)}
}

func waiterOf(n Node) locknode.Node {
	node, _ := locknode.Parse(n.Path, []string{"wait-"})
	return node
}

// isStriped recognizes a striped lock by the programs that use it. Its stripes are mutexes below it.
func isStriped(w *walker, d *dir, o *Object) *found {
	programs := d.subs[programsDir]
	if programs == nil || programs.err != nil {
		return nil
	}
	names := o.choose(programs, RoleMember, w.cfg.maxNodes, programNode)
	if len(names) == 0 {
		return nil
	}
	for name := range names {
		stripes, err := strconv.ParseInt(programNode.FindStringSubmatch(name)[1], 10, 64)
		if err == nil && (o.Value == nil || *o.Value < stripes) {
			o.Value = &stripes
		}
	}
	o.Sure = true
	o.layout(LayoutDocent)
	return &found{owns: func(name string) bool { return name == programsDir }}
}
