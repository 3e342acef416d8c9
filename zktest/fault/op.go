package fault

import (
	"maps"
	"strconv"
)

// Op is the type of a request in the protocol.
type Op int32

// AnyOp in a [Match] stands for all types. No client can send it.
const AnyOp Op = 0

// OpConnect in a [Match] is the handshake of a connection. [DropAfter] opens the session without an
// answer, and [Fail] answers that the session has expired. The handshake has no type in the protocol
// and is not counted. Proxies have no rules for it.
const OpConnect Op = 1 << 20

// The requests that a client can send.
const (
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13 // within a multi only
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10 // by a server only
	OpCloseSession         Op = -11
)

// info describes the requests of a type.
type info struct {
	name      string
	pathFirst bool // the body begins with a path
}

var ops = map[Op]info{
	AnyOp:                  {"any", false},
	OpConnect:              {"connect", false},
	OpCreate:               {"create", true},
	OpDelete:               {"delete", true},
	OpExists:               {"exists", true},
	OpGetData:              {"getData", true},
	OpSetData:              {"setData", true},
	OpGetACL:               {"getACL", true},
	OpSetACL:               {"setACL", true},
	OpGetChildren:          {"getChildren", true},
	OpSync:                 {"sync", true},
	OpPing:                 {"ping", false},
	OpGetChildren2:         {"getChildren2", true},
	OpCheck:                {"check", true},
	OpMulti:                {"multi", false},
	OpCreate2:              {"create2", true},
	OpReconfig:             {"reconfig", false},
	OpCheckWatches:         {"checkWatches", true},
	OpRemoveWatches:        {"removeWatches", true},
	OpCreateContainer:      {"createContainer", true},
	OpDeleteContainer:      {"deleteContainer", true},
	OpCreateTTL:            {"createTTL", true},
	OpMultiRead:            {"multiRead", false},
	OpAuth:                 {"auth", false},
	OpSetWatches:           {"setWatches", false},
	OpSASL:                 {"sasl", false},
	OpGetEphemerals:        {"getEphemerals", true},
	OpGetAllChildrenNumber: {"getAllChildrenNumber", true},
	OpSetWatches2:          {"setWatches2", false},
	OpAddWatch:             {"addWatch", true},
	OpWhoAmI:               {"whoAmI", false},
	OpCreateSession:        {"createSession", false},
	OpCloseSession:         {"closeSession", false},
}

// String returns the request's name in ZooKeeper's own documents, or op(n) if it has none.
func (o Op) String() string {
	if i, ok := ops[o]; ok {
		return i.name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}

// known reports whether there are requests of this type, or it stands for some.
func (o Op) known() bool {
	_, ok := ops[o]
	return ok
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
		if op != OpPing {
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
