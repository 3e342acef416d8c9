package cache

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/recipes/internal/kind"
)

// Node is a node as the cache has read it. It must not be changed: all readers share it.
type Node struct {
	Path string
	Data []byte  // nil with WithoutData, and if the node cannot be read
	Stat zk.Stat // as of the last read; Pzxid, Cversion and NumChildren may be older
	// Err says what the cache does not have: the client may not read the node (zk.ErrNoAuth; then
	// Stat is zero), its data cannot be decompressed, or its children cannot be listed.
	Err error
}

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	// Added means that New is in the cache.
	Added Kind = iota + 1
	// Changed means that New is in the place of Old: the data or Err is another one, or the node
	// was written without a change.
	Changed
	// Removed means that Old is no longer in the cache.
	Removed
	// Ready means that the cache is current: it has read everything since it was made, or since the
	// connection came back. Changes since then are read as they are told.
	Ready
	// Stale means that the connection was lost, or that the servers may not have told all changes
	// for another reason: what they have may be newer than the cache since Since. Ready follows
	// when the cache is current again.
	Stale
)

// String returns the kind in lower case.
func (k Kind) String() string { return kind.Text(int(k), int(Stale)) }

// Event is one difference between two contents of a Cache, or a change of its state.
type Event struct {
	Kind  Kind
	Old   *Node     // of Changed and Removed
	New   *Node     // of Added and Changed
	Since time.Time // of Stale
}

// Path returns the path of the node; "" with Ready and Stale.
func (e Event) Path() string {
	switch {
	case e.New != nil:
		return e.New.Path
	case e.Old != nil:
		return e.Old.Path
	}
	return ""
}

// String returns the kind and the path.
func (e Event) String() string {
	if path := e.Path(); path != "" {
		return e.Kind.String() + " " + path
	}
	return e.Kind.String()
}
