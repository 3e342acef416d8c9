package inspect

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/docent-zk/docent/recipes"
)

// The directories of a semaphore.
const (
	leasesDir = "leases"
	locksDir  = "locks"
)

// partDirs are directories that are a part of the object above them.
var partDirs = []string{leasesDir, locksDir, programsDir}

// found is an object, and which children of its node are a part of it. The others are looked at for
// themselves.
type found struct {
	object *Object
	owns   func(name string) bool
}

func all(string) bool  { return true }
func none(string) bool { return false }

// A recognizer returns the object that a node and its children are, nil if they are none of its
// kind. Kind, path, data and time are set already.
type recognizer func(w *walker, d *dir, o *Object) *found

// recognizers is the table of all kinds, in the order in which they are tried. The documentation of
// the package has the same table. A new kind is a line in both, and a function here.
var recognizers = []struct {
	kind Kind
	is   recognizer
}{
	{"", isQueue}, // a mutex, a read-write lock or a latch: see families
	{KindSemaphore, isSemaphore},
	{KindStriped, isStriped},
	{KindCondition, isCondition},
	{KindCyclicBarrier, isCyclicBarrier},
	{KindCountDown, isCountDown},
	{KindValue, isMarked}, // or a count or an atomic
	{KindSemaphore, isKazooSemaphore},
	{KindService, isService},
	{KindDoubleBarrier, isDoubleBarrier},
	{KindGroup, isGroup},
	{KindTermRecord, isTermRecord},
	{KindCount, isCount},
	{KindAtomic, isAtomic},
	{KindCount, isTextCounter},
	{KindBarrier, isBarrier},
}

// recognize returns the object that d is, nil if it is none.
func (w *walker) recognize(d *dir) *found {
	if d.err != nil {
		return nil
	}
	for _, r := range recognizers {
		o := w.object(d, r.kind)
		if f := r.is(w, d, o); f != nil {
			f.object = o
			return f
		}
	}
	return nil
}

// object returns an Object without nodes.
func (w *walker) object(d *dir, kind Kind) *Object {
	return &Object{Path: d.path, Kind: kind, Data: text(d.data), At: time.Now().Add(w.cfg.offset)}
}

// unrecognized returns the Object of a node that is no object of a recipe.
func (w *walker) unrecognized(d *dir) *Object {
	o := w.object(d, KindUnknown)
	if d.err == nil && d.leaf() && len(d.data) == 0 && d.stat.Cversion > 0 {
		o.Kind, o.State = KindEmpty, StateFree
	}
	o.Foreign = len(d.names)
	return o
}

func isQueue(w *walker, d *dir, o *Object) *found {
	if d.shape == nil || d.shape.family.kind == KindSemaphore {
		return nil
	}
	o.Kind, o.Sure = d.shape.family.kind, true
	d.shape.fill(o, d, w.cfg.maxNodes)
	locks := func(n Node) bool { return n.Layout != LayoutOther || n.Session != 0 }
	if !o.Sure && !slices.ContainsFunc(o.Nodes, locks) {
		return nil // persistent nodes with numbers, of any program
	}
	o.State = queueState(o)
	return &found{owns: d.shape.has}
}

// queueState returns the state that the nodes of an object show.
func queueState(o *Object) State {
	switch {
	case len(o.Nodes) > 0 && o.Nodes[0].Holds && o.Nodes[0].Session == 0 && o.Nodes[0].Err == "":
		return StateAbandoned
	case o.Waiters > 0:
		return StateWaitedFor
	case o.Holders > 0:
		return StateHeld
	}
	return StateFree
}

func isSemaphore(w *walker, d *dir, o *Object) *found {
	leases, locks := d.subs[leasesDir], d.subs[locksDir]
	if leases == nil || leases.err != nil || leases.stat.EphemeralOwner != 0 {
		return nil
	}
	permits := leases.shape != nil && leases.shape.family.kind == KindSemaphore
	waiters := locks != nil && locks.shape != nil && locks.shape.family.kind == KindMutex
	if !permits && (locks == nil || len(leases.names) > 0 || !waiters && len(locks.names) > 0) {
		return nil
	}
	o.Sure = true
	if permits {
		leases.shape.others = slices.DeleteFunc(leases.shape.others, isPin)
		leases.shape.fill(o, leases, w.cfg.maxNodes)
		for i := range o.Nodes {
			o.Nodes[i].HeldSince = o.Nodes[i].Since // the transaction that takes a permit creates its node
		}
	}
	if waiters {
		queue := &Object{Sure: true}
		locks.shape.fill(queue, locks, w.cfg.maxNodes)
		for _, n := range queue.Nodes { // the first one waits for permits
			n.Role, n.Holds, n.HeldSince = RoleWaiter, false, time.Time{}
			o.Nodes = append(o.Nodes, n)
		}
		o.Waiters = queue.Holders + queue.Waiters
		o.Unread, o.Foreign, o.Sure = o.Unread+queue.Unread, o.Foreign+queue.Foreign, o.Sure && queue.Sure
		for _, warning := range queue.Warnings {
			o.warn(warning)
		}
		for _, layout := range queue.Layouts {
			o.layout(layout)
		}
	}
	if !permits && !waiters {
		o.Sure = false
		o.layout(LayoutCurator)
	}
	if limit, ok := number(d.data, 4); ok && limit >= 0 {
		w.setLimit(o, limit)
	}
	o.State = queueState(o)
	return &found{owns: func(name string) bool {
		return name == leasesDir || name == locksDir && (waiters || locks != nil && len(locks.names) == 0)
	}}
}

var pin = regexp.MustCompile(pinMark + `[0-9]{10}$`)

func isPin(name string) bool { return pin.MatchString(name) }

// setLimit notes the limit of a semaphore. Curator's waiter at the front has a permit's node already
// and counts it. So the newest one waits if there are more than the limit, and it is of the same
// session as the waiter at the front.
func (w *walker) setLimit(o *Object, limit int64) {
	o.Limit = &limit
	if int64(o.Holders) <= limit {
		return
	}
	newest, front := -1, -1
	for i, n := range o.Nodes {
		if n.Role == RolePermit && (newest < 0 || n.Token > o.Nodes[newest].Token) {
			newest = i
		}
		if n.Role == RoleWaiter && front < 0 {
			front = i
		}
	}
	if front >= 0 && newest >= 0 {
		if n := &o.Nodes[newest]; n.Session != 0 && n.Session == o.Nodes[front].Session {
			n.Holds, n.HeldSince = false, time.Time{}
			o.Holders, o.Waiters = o.Holders-1, o.Waiters+1
		}
	}
	if int64(o.Holders) > limit {
		o.warn(WarnOverLimit)
	}
}

var (
	hexName  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	uuidName = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	party    = regexp.MustCompile(`^[0-9a-f]{32}__party__$`)
	shallow  = regexp.MustCompile(`^[0-9a-f]{32}-.+$`)
)

// ephemeral reports whether all children that were read, but for those that skip matches, belong to
// sessions and have names that match. There must be one.
func (d *dir) ephemeral(match *regexp.Regexp, skip string) bool {
	count := 0
	for name, kid := range d.kids {
		if name == skip && kid.stat != nil && kid.stat.EphemeralOwner == 0 {
			continue
		}
		if kid.stat == nil || kid.stat.EphemeralOwner == 0 || match != nil && !match.MatchString(name) {
			return false
		}
		count++
	}
	return count > 0
}

// members adds the children of d that were read, sorted by name, but for the one with the name skip.
func (o *Object) members(d *dir, role Role, maxNodes int, skip string) {
	for _, name := range d.names {
		kid := d.kids[name]
		switch {
		case name == skip:
		case kid == nil || len(o.Nodes) == maxNodes:
			o.Unread++
			o.Holders++
		default:
			n := nodeOf(kid, role)
			n.ID, n.Holds, n.HeldSince = name, true, n.Since
			o.Nodes = append(o.Nodes, n)
			o.Holders++
		}
	}
}

func isKazooSemaphore(w *walker, d *dir, o *Object) *found {
	limit, err := strconv.ParseInt(string(d.data), 10, 32)
	if err != nil || limit < 0 || !d.ephemeral(hexName, "") {
		return nil
	}
	o.members(d, RolePermit, w.cfg.maxNodes, "")
	for i := range o.Nodes {
		o.Nodes[i].ID = ""
	}
	o.layout(LayoutKazoo)
	w.setLimit(o, limit)
	o.State = StateHeld // the waiters are in the mutex beside it
	return &found{owns: all}
}

// instance is what is shown of an instance of service discovery.
type instance struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	SSLPort int    `json:"sslPort"`
}

// instanceOf returns the instance that a node below the node of a service is.
func instanceOf(service, name string, data []byte) (instance, bool) {
	var i instance
	if json.Unmarshal(data, &i) != nil || i.Name != service || i.ID == "" {
		return instance{}, false
	}
	return i, strings.HasPrefix(name, i.ID) // behind it a DynamicSequential one has a number
}

func isService(w *walker, d *dir, o *Object) *found {
	mine := map[string]bool{}
	for _, name := range d.names {
		kid := d.kids[name]
		if kid == nil {
			continue
		}
		i, ok := instanceOf(d.name(), name, kid.data)
		if !ok {
			continue
		}
		mine[name] = true
		o.Holders++
		if len(o.Nodes) == w.cfg.maxNodes {
			o.Unread++
			continue
		}
		n := nodeOf(kid, RoleInstance)
		n.ID, n.Host, n.Port, n.Holds, n.HeldSince = i.ID, i.Address, i.Port, true, n.Since
		if n.Port == 0 {
			n.Port = i.SSLPort
		}
		o.Nodes = append(o.Nodes, n)
	}
	if len(mine) == 0 {
		return nil
	}
	o.Sure = true
	o.layout(LayoutCurator)
	unread := len(d.names) - len(d.kids)
	o.Unread, o.Holders = o.Unread+unread, o.Holders+unread
	o.Foreign = len(d.kids) - len(mine)
	return &found{owns: func(name string) bool { return mine[name] || d.kids[name] == nil }}
}

// readyName is the name of the node by which a double barrier is open.
const readyName = "ready"

func isDoubleBarrier(w *walker, d *dir, o *Object) *found {
	node, ready := d.kids[readyName]
	onlyReady := ready && len(d.names) == 1 && node.stat != nil && node.stat.EphemeralOwner == 0 &&
		node.stat.NumChildren == 0
	curator, kazoo := d.ephemeral(uuidName, readyName), d.ephemeral(hexName, readyName)
	either := d.ephemeral(memberName, readyName)
	if !either && !onlyReady {
		return nil
	}
	if curator || either && !kazoo {
		o.layout(LayoutCurator)
	}
	if kazoo || either && !curator {
		o.layout(LayoutKazoo)
	}
	o.members(d, RoleMember, w.cfg.maxNodes, readyName)
	o.Sure = ready && either
	switch {
	case onlyReady:
		o.State = StateAbandoned
	case ready:
		o.State = StateOpen
	default:
		o.wait()
	}
	return &found{owns: all}
}

var memberName = regexp.MustCompile(uuidName.String() + "|" + hexName.String())

func isGroup(w *walker, d *dir, o *Object) *found {
	if d.shape != nil || !d.ephemeral(nil, "") {
		return nil
	}
	o.members(d, RoleMember, w.cfg.maxNodes, "")
	switch {
	case d.ephemeral(party, ""):
		o.Sure = true
		o.layout(LayoutKazoo)
		for i := range o.Nodes {
			o.Nodes[i].ID = o.Nodes[i].Data
		}
	case d.ephemeral(shallow, ""):
		o.layout(LayoutKazoo)
		for i, n := range o.Nodes {
			_, o.Nodes[i].ID, _ = strings.Cut(n.ID, "-")
		}
	default:
		o.layout(LayoutCurator)
	}
	return &found{owns: all}
}

func isTermRecord(_ *walker, d *dir, o *Object) *found {
	var term struct {
		Token    int64 `json:"token"`
		Resigned *bool `json:"resigned"`
	}
	if !d.leaf() || !strings.HasSuffix(d.path, "-term") || json.Unmarshal(d.data, &term) != nil ||
		term.Token <= 0 || term.Resigned == nil {
		return nil
	}
	o.Sure, o.Value = true, &term.Token
	o.layout(LayoutDocent)
	return &found{owns: none}
}

func isCount(_ *walker, d *dir, o *Object) *found { return isNumber(d, o, 4) }

func isAtomic(_ *walker, d *dir, o *Object) *found { return isNumber(d, o, 8) }

func isNumber(d *dir, o *Object, size int) *found {
	value, ok := number(d.data, size)
	if !ok || !d.leaf() || text(d.data) != "" {
		return nil
	}
	o.Value = &value
	o.layout(LayoutCurator)
	return &found{owns: none}
}

// number returns the number in data of that many bytes, the highest first.
func number(data []byte, size int) (int64, bool) {
	switch {
	case len(data) != size:
		return 0, false
	case size == 4:
		return int64(int32(binary.BigEndian.Uint32(data))), true
	}
	return int64(binary.BigEndian.Uint64(data)), true
}

func isTextCounter(_ *walker, d *dir, o *Object) *found {
	value, err := strconv.ParseInt(string(d.data), 10, 64)
	if err != nil || !d.leaf() {
		return nil
	}
	o.Value = &value
	o.layout(LayoutKazoo)
	return &found{owns: none}
}

func isBarrier(_ *walker, d *dir, o *Object) *found {
	if !d.leaf() || d.stat.Cversion != 0 || net.ParseIP(string(d.data)) == nil {
		return nil
	}
	o.State = StateClosed
	o.layout(LayoutCurator)
	return &found{owns: none}
}

// nodeOf returns the Node of a child.
func nodeOf(z *znode, role Role) Node {
	n := Node{Path: z.path, Role: role, Data: text(z.data), Revoked: string(z.data) == recipes.RevokeMessage}
	if z.err != nil {
		n.Err = z.err.Error()
	}
	if z.stat != nil {
		n.Session, n.Token, n.Since = ID(z.stat.EphemeralOwner), ID(z.stat.Czxid), time.UnixMilli(z.stat.Ctime)
	}
	if id := recipes.ParseIdentity(z.data); id != nil {
		n.Host, n.Process, n.PID = text([]byte(id.Host)), text([]byte(id.Process)), id.PID
	} else if net.ParseIP(n.Data) != nil {
		n.Host = n.Data
	}
	if role == RoleCandidate {
		n.ID = n.Data
	}
	return n
}

// maxText is how much of data is shown.
const maxText = 1000

// text returns data, or its first part, if it is printable.
func text(data []byte) string {
	s := string(data[:min(len(data), maxText)])
	if len(data) > maxText {
		s = strings.ToValidUTF8(s, "")
	}
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return ""
		}
	}
	return s
}

// tear notes that the nodes of the object may never have been there together.
func (o *Object) tear() {
	o.Torn = true
	for i := range o.Nodes {
		if o.Nodes[i].Role != RolePermit {
			o.Nodes[i].HeldSince = time.Time{}
		}
	}
}

func (o *Object) warn(w Warning) {
	if !slices.Contains(o.Warnings, w) {
		o.Warnings = append(o.Warnings, w)
	}
}

// layout notes a layout of a node of the object.
func (o *Object) layout(l Layout) {
	if !slices.Contains(o.Layouts, l) {
		o.Layouts = append(o.Layouts, l)
		slices.Sort(o.Layouts)
	}
}
