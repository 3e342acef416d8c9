package proxy

import (
	"maps"
	"strconv"
)

// Op is the type of a request, as it stands on the wire.
type Op int32

// AnyOp in a [Match] stands for all of them. No client can send it.
const AnyOp Op = 0

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
	OpCloseSession         Op = -11
)

// opInfo is what the proxy knows about a request.
type opInfo struct {
	name      string
	pathFirst bool // the body begins with a path
}

var ops = map[Op]opInfo{
	AnyOp:                  {"any", false},
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
	OpCloseSession:         {"closeSession", false},
}

// String is the request's name in ZooKeeper's own documents, or op(n) if it has none.
func (o Op) String() string {
	if info, ok := ops[o]; ok {
		return info.name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}

// Counts is how many requests of each type there were. A type that never came is missing, and reads as 0.
type Counts map[Op]int

// Total is the number of all requests but pings, which come with time and not with what a program does.
func (c Counts) Total() int {
	total := 0
	for op, n := range c {
		if op != OpPing {
			total += n
		}
	}
	return total
}

func (c Counts) clone() Counts {
	if c == nil {
		return Counts{}
	}
	return maps.Clone(c)
}
