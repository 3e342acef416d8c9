package proxy

import "github.com/docent-zk/docent/zktest/op"

// Op is the type of a request in the protocol.
type Op = op.Op

// AnyOp in a [Match] stands for all types. No client can send it.
const AnyOp = op.Any

// The requests that a client can send.
const (
	OpCreate               = op.Create
	OpDelete               = op.Delete
	OpExists               = op.Exists
	OpGetData              = op.GetData
	OpSetData              = op.SetData
	OpGetACL               = op.GetACL
	OpSetACL               = op.SetACL
	OpGetChildren          = op.GetChildren
	OpSync                 = op.Sync
	OpPing                 = op.Ping
	OpGetChildren2         = op.GetChildren2
	OpCheck                = op.Check // within a multi only
	OpMulti                = op.Multi
	OpCreate2              = op.Create2
	OpReconfig             = op.Reconfig
	OpCheckWatches         = op.CheckWatches
	OpRemoveWatches        = op.RemoveWatches
	OpCreateContainer      = op.CreateContainer
	OpDeleteContainer      = op.DeleteContainer
	OpCreateTTL            = op.CreateTTL
	OpMultiRead            = op.MultiRead
	OpAuth                 = op.Auth
	OpSetWatches           = op.SetWatches
	OpSASL                 = op.SASL
	OpGetEphemerals        = op.GetEphemerals
	OpGetAllChildrenNumber = op.GetAllChildrenNumber
	OpSetWatches2          = op.SetWatches2
	OpAddWatch             = op.AddWatch
	OpWhoAmI               = op.WhoAmI
	OpCloseSession         = op.CloseSession
)

// Counts has the number of requests of each type. A type without requests is missing and reads as
// 0.
type Counts = op.Counts
