package inspect

import (
	"fmt"
	"strconv"
	"time"

	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes"
)

// Kind is the recipe of an Object.
type Kind string

// The kinds of objects. The table in the documentation of the package says how each is recognized.
const (
	KindMutex         Kind = "mutex"  // or an Election, which has the same nodes
	KindRWLock        Kind = "rwlock" // a read-write lock
	KindSemaphore     Kind = "semaphore"
	KindLatch         Kind = "latch"       // the election of a leader.Latch
	KindTermRecord    Kind = "term-record" // of leader.WithLockDelay
	KindStriped       Kind = "striped"     // its stripes are mutexes below it
	KindCondition     Kind = "condition"
	KindBarrier       Kind = "barrier"
	KindDoubleBarrier Kind = "double-barrier"
	KindCyclicBarrier Kind = "cyclic-barrier"
	KindCountDown     Kind = "count-down"
	KindCount         Kind = "count"  // Curator's SharedCount, kazoo's Counter
	KindAtomic        Kind = "atomic" // Curator's DistributedAtomicLong
	KindValue         Kind = "value"  // Curator's SharedValue, while a client of docent writes it
	KindGroup         Kind = "group"
	KindService       Kind = "service" // of service discovery
	KindEmpty         Kind = "empty"   // a node without data that has had children: a free lock, perhaps
	KindUnknown       Kind = "unknown"
)

// Layout says which program's names the nodes of an object have.
type Layout string

// The layouts.
const (
	LayoutCurator     Layout = "curator" // docent writes the same names
	LayoutKazoo       Layout = "kazoo"
	LayoutGoZooKeeper Layout = "go-zookeeper" // its zk.Lock
	LayoutDocent      Layout = "docent"       // what only docent writes, and its WithKazooNames
	LayoutOther       Layout = "other"        // the ending is known, the rest of the name is not
)

// State is what the nodes of an Object show of its use. It is that of the servers: a holder whose
// process has crashed holds until its session expires, and reads do not show the difference.
type State string

// The states. A Kind that is neither a lock nor a barrier has none.
const (
	// StateFree: no node competes. Of KindEmpty: there is none, whatever it was.
	StateFree State = "free"
	// StateHeld: at least one node holds, and none waits.
	StateHeld State = "held"
	// StateWaitedFor: at least one node waits. Of a semaphore perhaps none holds: then the first waiter
	// is about to take permits, or the limit is less than it wants. Of a barrier: members wait for
	// others.
	StateWaitedFor State = "waited-for"
	// StateAbandoned: the first holder's node belongs to no session, so no end of a session deletes it.
	// It stays until a program deletes it. Of a double barrier: it is open and has no members.
	StateAbandoned State = "abandoned"
	// StateClosed: the barrier is set, or counts are missing.
	StateClosed State = "closed"
	// StateOpen: the members of the double barrier have entered, or no counts are missing.
	StateOpen State = "open"
)

// Role says what a Node is in its Object.
type Role string

// The roles.
const (
	RoleLock      Role = "lock"      // of a mutex
	RoleReader    Role = "reader"    // of a read-write lock
	RoleWriter    Role = "writer"    // of a read-write lock
	RolePermit    Role = "permit"    // of a semaphore
	RoleWaiter    Role = "waiter"    // for permits of a semaphore, or in a condition
	RoleCandidate Role = "candidate" // of a latch
	RoleMember    Role = "member"    // of a group, a barrier or the programs of a striped lock
	RoleUpdater   Role = "updater"   // a client that updates a counter
	RoleInstance  Role = "instance"  // of a service
)

// Warning is something about an Object that an operator should look at.
type Warning string

// The warnings.
const (
	// WarnForeign: the directory of a queue has children that are not of the queue. Curator counts them,
	// and those that sort before the digits block its clients for good.
	WarnForeign Warning = "foreign-children"
	// WarnMixedRecipes: nodes of two recipes that do not exclude each other are in one directory. The
	// Object has those of one of them.
	WarnMixedRecipes Warning = "mixed-recipes"
	// WarnMixedLayouts: Curator's and kazoo's endings are in one queue. Locks of Curator and of kazoo
	// exclude each other only as docs/migration.md says.
	WarnMixedLayouts Warning = "mixed-layouts"
	// WarnPersistent: a node that should end with a session belongs to none.
	WarnPersistent Warning = "persistent-node"
	// WarnSequence: the sequence numbers are beyond 2^30, half of their range.
	WarnSequence Warning = "sequence-near-end"
	// WarnOverLimit: more permits are held than the limit allows. The limit may have been lowered.
	WarnOverLimit Warning = "over-limit"
)

// ID is the id of a session or of a transaction. Its text, also in JSON, is hexadecimal, as that of
// ZooKeeper's tools: 0x10000a2b3c40001.
type ID int64

// String returns the id in hexadecimal.
func (id ID) String() string { return logfield.Hex(id).String() }

// MarshalText returns the id in hexadecimal.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is ParseID.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ParseID returns the id of a text: hexadecimal after 0x, decimal otherwise. It returns an error for
// other texts.
func ParseID(text string) (ID, error) {
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return ID(n), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("inspect: %q is not an id such as 0x10000a2b3c40001", text)
	}
	return ID(n), nil
}

// Object is a lock, an election or another object of a recipe, as its nodes on the servers show it.
type Object struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// Sure reports whether the nodes have names or data that only this recipe makes. Otherwise they have
	// its shape, and those of other programs can have it, too.
	Sure    bool     `json:"sure"`
	Layouts []Layout `json:"layouts,omitempty"` // whose names the nodes have
	State   State    `json:"state,omitempty"`

	// Nodes are the nodes of the object: those of a queue in its order, permits before waiters, others
	// by name. There are at most as many as WithMaxNodes says.
	Nodes   []Node `json:"nodes,omitempty"`
	Unread  int    `json:"unread,omitempty"`  // nodes of the object that are not in Nodes
	Holders int    `json:"holders"`           // nodes that hold, also those not in Nodes; members, instances
	Waiters int    `json:"waiters"`           // nodes that wait, also those not in Nodes
	Foreign int    `json:"foreign,omitempty"` // children that are not of the object

	Limit *int64 `json:"limit,omitempty"` // permits of a semaphore, parties of a barrier; nil: not known
	// Value is the number of a counter, the token of a term record, the generation of a cyclic barrier,
	// the counts that a count-down misses, or the largest number of stripes.
	Value *int64 `json:"value,omitempty"`
	Data  string `json:"data,omitempty"` // of the node itself, if it is text

	Warnings []Warning `json:"warnings,omitempty"`
	// Torn reports that the nodes changed while they were read, several times in succession. Then Nodes
	// may have never been there together.
	Torn bool `json:"torn,omitempty"`
	// At is when the object was read, by the local clock and WithClockOffset.
	At time.Time `json:"at"`
}

// Age returns for how long a node of the object has existed. It is never negative. It is wrong by as
// much as the clock of the ZooKeeper leader differs from that of At.
func (o *Object) Age(n Node) time.Duration {
	if n.Since.IsZero() {
		return 0
	}
	return max(0, o.At.Sub(n.Since))
}

// Node is a node of an Object.
type Node struct {
	Path   string `json:"path"`
	Role   Role   `json:"role"`
	Layout Layout `json:"layout,omitempty"`
	// Holds reports whether no conflicting node is ahead. Members and instances hold.
	Holds bool `json:"holds"`
	// Ahead is the number of conflicting nodes ahead in the queue.
	Ahead     int       `json:"ahead"`
	Session   ID        `json:"session"`             // 0: the node belongs to no session, or Err is not empty
	Token     ID        `json:"token"`               // the czxid: the fencing token, if the node is of a lock
	Since     time.Time `json:"since,omitzero"`      // when the node was created, by the servers' clock
	HeldSince time.Time `json:"held_since,omitzero"` // as recipes.Participant.HeldSince

	ID      string `json:"id,omitempty"`      // of a member, an instance or a candidate
	Host    string `json:"host,omitempty"`    // of docent's Identity, an IP address as data, or an instance
	Process string `json:"process,omitempty"` // of docent's Identity
	PID     int    `json:"pid,omitempty"`     // of docent's Identity
	Port    int    `json:"port,omitempty"`    // of an instance
	Data    string `json:"data,omitempty"`    // if it is text: its first 1,000 bytes
	Revoked bool   `json:"revoked,omitempty"` // the holder was asked to release: see recipes.Revoke
	Err     string `json:"error,omitempty"`   // why the node could not be read

	kind string // the ending of the name before the number, for cycles
}

// Participant returns the node as recipes.Revoke takes it.
func (n Node) Participant() recipes.Participant {
	data := []byte(n.Data)
	return recipes.Participant{
		Node: n.Path, Data: data, Identity: recipes.ParseIdentity(data), Session: int64(n.Session),
		Token: int64(n.Token), Since: n.Since, Holds: n.Holds, HeldSince: n.HeldSince,
	}
}
