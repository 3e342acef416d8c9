// Package op names the requests of the ZooKeeper protocol.
package op

import (
	"maps"
	"strconv"
)

// Op is the type of a request in the protocol.
type Op int32

// Any stands for all types. No client can send it.
const Any Op = 0

// Connect stands for the handshake of a connection, which has no type. No client can send it.
const Connect Op = 1 << 20

// The requests that a client can send.
const (
	Create               Op = 1
	Delete               Op = 2
	Exists               Op = 3
	GetData              Op = 4
	SetData              Op = 5
	GetACL               Op = 6
	SetACL               Op = 7
	GetChildren          Op = 8
	Sync                 Op = 9
	Ping                 Op = 11
	GetChildren2         Op = 12
	Check                Op = 13 // within a multi only
	Multi                Op = 14
	Create2              Op = 15
	Reconfig             Op = 16
	CheckWatches         Op = 17
	RemoveWatches        Op = 18
	CreateContainer      Op = 19
	DeleteContainer      Op = 20
	CreateTTL            Op = 21
	MultiRead            Op = 22
	Auth                 Op = 100
	SetWatches           Op = 101
	SASL                 Op = 102
	GetEphemerals        Op = 103
	GetAllChildrenNumber Op = 104
	SetWatches2          Op = 105
	AddWatch             Op = 106
	WhoAmI               Op = 107
	CreateSession        Op = -10 // by a server only
	CloseSession         Op = -11
)

// info describes the requests of a type.
type info struct {
	name      string
	pathFirst bool // the body begins with a path
}

var ops = map[Op]info{
	Any:                  {"any", false},
	Connect:              {"connect", false},
	Create:               {"create", true},
	Delete:               {"delete", true},
	Exists:               {"exists", true},
	GetData:              {"getData", true},
	SetData:              {"setData", true},
	GetACL:               {"getACL", true},
	SetACL:               {"setACL", true},
	GetChildren:          {"getChildren", true},
	Sync:                 {"sync", true},
	Ping:                 {"ping", false},
	GetChildren2:         {"getChildren2", true},
	Check:                {"check", true},
	Multi:                {"multi", false},
	Create2:              {"create2", true},
	Reconfig:             {"reconfig", false},
	CheckWatches:         {"checkWatches", true},
	RemoveWatches:        {"removeWatches", true},
	CreateContainer:      {"createContainer", true},
	DeleteContainer:      {"deleteContainer", true},
	CreateTTL:            {"createTTL", true},
	MultiRead:            {"multiRead", false},
	Auth:                 {"auth", false},
	SetWatches:           {"setWatches", false},
	SASL:                 {"sasl", false},
	GetEphemerals:        {"getEphemerals", true},
	GetAllChildrenNumber: {"getAllChildrenNumber", true},
	SetWatches2:          {"setWatches2", false},
	AddWatch:             {"addWatch", true},
	WhoAmI:               {"whoAmI", false},
	CreateSession:        {"createSession", false},
	CloseSession:         {"closeSession", false},
}

// String returns the request's name in ZooKeeper's own documents, or op(n) if it has none.
func (o Op) String() string {
	if i, ok := ops[o]; ok {
		return i.name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}

// PathFirst reports whether the request's body begins with a path.
func (o Op) PathFirst() bool { return ops[o].pathFirst }

// Counts has the number of requests of each type. A type without requests is missing and reads as
// 0.
type Counts map[Op]int

// Total returns the number of requests without pings, which depend on time and not on what a
// program does.
func (c Counts) Total() int {
	total := 0
	for op, n := range c {
		if op != Ping {
			total += n
		}
	}
	return total
}

// Clone returns a copy, never nil.
func (c Counts) Clone() Counts {
	if c == nil {
		return Counts{}
	}
	return maps.Clone(c)
}
