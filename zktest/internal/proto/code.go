package proto

import "strconv"

// Code is the error code of a reply.
type Code int32

// The codes that servers send.
const (
	OK                 Code = 0
	RuntimeInconsist   Code = -2
	ConnectionLoss     Code = -4
	Marshalling        Code = -5
	Unimplemented      Code = -6
	OperationTimeout   Code = -7
	BadArguments       Code = -8
	NoNode             Code = -101
	NoAuth             Code = -102
	BadVersion         Code = -103
	NoChildrenForEphem Code = -108
	NodeExists         Code = -110
	NotEmpty           Code = -111
	SessionExpired     Code = -112
	InvalidACL         Code = -114
	AuthFailed         Code = -115
	SessionMoved       Code = -118
	NotReadOnly        Code = -119
	NoWatcher          Code = -121
	RequestTimeout     Code = -122
	ReconfigDisabled   Code = -123
	QuotaExceeded      Code = -125
	Throttled          Code = -127
)

var codes = map[Code]string{
	OK:                 "ok",
	RuntimeInconsist:   "runtime inconsistency",
	ConnectionLoss:     "connection loss",
	Marshalling:        "marshalling error",
	Unimplemented:      "unimplemented",
	OperationTimeout:   "operation timeout",
	BadArguments:       "bad arguments",
	NoNode:             "no node",
	NoAuth:             "not authorized",
	BadVersion:         "bad version",
	NoChildrenForEphem: "ephemerals have no children",
	NodeExists:         "node exists",
	NotEmpty:           "not empty",
	SessionExpired:     "session expired",
	InvalidACL:         "invalid ACL",
	AuthFailed:         "authentication failed",
	SessionMoved:       "session moved",
	NotReadOnly:        "server is read-only",
	NoWatcher:          "no such watcher",
	RequestTimeout:     "request timeout",
	ReconfigDisabled:   "reconfiguration disabled",
	QuotaExceeded:      "quota exceeded",
	Throttled:          "throttled",
}

// String returns the code in words, with its number.
func (c Code) String() string {
	if c == OK {
		return codes[OK]
	}
	number := "(" + strconv.Itoa(int(c)) + ")"
	if name, ok := codes[c]; ok {
		return name + " " + number
	}
	return "error " + number
}

// Error returns String with a prefix. Only a Code other than OK is an error.
func (c Code) Error() string { return "zookeeper: " + c.String() }
