package zktest

import "github.com/docent-zk/docent/zktest/internal/proto"

// Code is an error code of the protocol. It is an error value: errors.Is(err, zktest.NoNode) works.
type Code int32

// The codes that the server sends or that fault.Fail can send.
const (
	OK                      = Code(proto.OK)
	RuntimeInconsistency    = Code(proto.RuntimeInconsist)
	ConnectionLoss          = Code(proto.ConnectionLoss)
	MarshallingError        = Code(proto.Marshalling)
	Unimplemented           = Code(proto.Unimplemented)
	OperationTimeout        = Code(proto.OperationTimeout)
	BadArguments            = Code(proto.BadArguments)
	NoNode                  = Code(proto.NoNode)
	NoAuth                  = Code(proto.NoAuth)
	BadVersion              = Code(proto.BadVersion)
	NoChildrenForEphemerals = Code(proto.NoChildrenForEphem)
	NodeExists              = Code(proto.NodeExists)
	NotEmpty                = Code(proto.NotEmpty)
	SessionExpired          = Code(proto.SessionExpired)
	InvalidACL              = Code(proto.InvalidACL)
	AuthFailed              = Code(proto.AuthFailed)
	SessionMoved            = Code(proto.SessionMoved)
	NotReadOnly             = Code(proto.NotReadOnly)
	NoWatcher               = Code(proto.NoWatcher)
	RequestTimeout          = Code(proto.RequestTimeout)
	ReconfigDisabled        = Code(proto.ReconfigDisabled)
	QuotaExceeded           = Code(proto.QuotaExceeded)
	Throttled               = Code(proto.Throttled)
)

// String returns the code in words, with its number.
func (c Code) String() string { return proto.Code(c).String() }

// Error returns String. OK is an error value like the others: compare before wrapping it.
func (c Code) Error() string { return proto.Code(c).Error() }
