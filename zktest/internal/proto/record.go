package proto

// Stat is the server's data about a node. Times are milliseconds since 1970.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// The permissions of an ACL entry.
const (
	PermRead = 1 << iota
	PermWrite
	PermCreate
	PermDelete
	PermAdmin
	PermAll = 1<<iota - 1
)

// ACL is an entry of an access control list.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// ID is one identity of a connection.
type ID struct{ Scheme, ID string }

// The modes of a create.
const (
	FlagPersistent int32 = iota
	FlagEphemeral
	FlagSequential
	FlagEphemeralSequential
	FlagContainer
	FlagTTL
	FlagTTLSequential
)

// The types of watch events.
const (
	EventCreated int32 = iota + 1
	EventDeleted
	EventDataChanged
	EventChildrenChanged
)

// StateConnected is the only state that a server sends with an event.
const StateConnected = 3

// The modes of addWatch.
const (
	ModePersistent int32 = iota
	ModeRecursive
)

// The watcher types of checkWatches and removeWatches.
const (
	WatcherChildren int32 = iota + 1
	WatcherData
	WatcherAny
	WatcherPersistent
	WatcherRecursive
)

// The transaction ids of frames that answer no request, or one of many pings.
const (
	XIDEvent = -1
	XIDPing  = -2
)
