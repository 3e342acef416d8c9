package rawzk

import "fmt"

// The codes of the requests.
const (
	OpNotification         int32 = 0
	OpCreate               int32 = 1
	OpDelete               int32 = 2
	OpExists               int32 = 3
	OpGetData              int32 = 4
	OpSetData              int32 = 5
	OpGetACL               int32 = 6
	OpSetACL               int32 = 7
	OpGetChildren          int32 = 8
	OpSync                 int32 = 9
	OpPing                 int32 = 11
	OpGetChildren2         int32 = 12
	OpCheck                int32 = 13
	OpMulti                int32 = 14
	OpCreate2              int32 = 15
	OpReconfig             int32 = 16
	OpCheckWatches         int32 = 17
	OpRemoveWatches        int32 = 18
	OpCreateContainer      int32 = 19
	OpDeleteContainer      int32 = 20
	OpCreateTTL            int32 = 21
	OpMultiRead            int32 = 22
	OpAuth                 int32 = 100
	OpSetWatches           int32 = 101
	OpSasl                 int32 = 102
	OpGetEphemerals        int32 = 103
	OpGetAllChildrenNumber int32 = 104
	OpSetWatches2          int32 = 105
	OpAddWatch             int32 = 106
	OpWhoAmI               int32 = 107
	OpCreateSession        int32 = -10
	OpCloseSession         int32 = -11
)

// Create flags.
const (
	Persistent           int32 = 0
	Ephemeral            int32 = 1
	Sequential           int32 = 2
	EphemeralSequential  int32 = 3
	Container            int32 = 4
	TTL                  int32 = 5
	PersistentSequentTTL int32 = 6
)

// Op is a request without its header, or a part of a multi.
type Op struct {
	Code int32
	Body []byte
	Text string // for people
}

func (o Op) String() string {
	if o.Text == "" {
		return fmt.Sprintf("op %d with body %x", o.Code, o.Body)
	}
	return o.Text
}

// Request returns the payload of a request.
func Request(xid int32, o Op) []byte { return Join(Int(xid), Int(o.Code), o.Body) }

func createLike(code int32, name, path string, data []byte, acl []ACL, flags int32) Op {
	return Op{
		Code: code,
		Body: Join(Str(path), Buf(data), ACLs(acl), Int(flags)),
		Text: fmt.Sprintf("%s %q data=%s acl=%v flags=%d", name, path, Quote(data), acl, flags),
	}
}

// Create creates a node; the reply has its path.
func Create(path string, data []byte, acl []ACL, flags int32) Op {
	return createLike(OpCreate, "create", path, data, acl, flags)
}

// Create2 creates a node; the reply has its path and Stat.
func Create2(path string, data []byte, acl []ACL, flags int32) Op {
	return createLike(OpCreate2, "create2", path, data, acl, flags)
}

// CreateContainer creates a container; the reply has its path and Stat.
func CreateContainer(path string, data []byte, acl []ACL, flags int32) Op {
	return createLike(OpCreateContainer, "createContainer", path, data, acl, flags)
}

// CreateTTL creates a node that the server deletes after ttl ms without a change. The reply has its
// path and Stat.
func CreateTTL(path string, data []byte, acl []ACL, flags int32, ttl int64) Op {
	o := createLike(OpCreateTTL, "createTTL", path, data, acl, flags)
	o.Body = append(o.Body, Long(ttl)...)
	o.Text += fmt.Sprintf(" ttl=%d", ttl)
	return o
}

func pathAndInt(code int32, name, path string, label string, v int32) Op {
	return Op{Code: code, Body: Join(Str(path), Int(v)), Text: fmt.Sprintf("%s %q %s=%d", name, path, label, v)}
}

func pathAndWatch(code int32, name, path string, watch bool) Op {
	return Op{Code: code, Body: Join(Str(path), Bool(watch)), Text: fmt.Sprintf("%s %q watch=%v", name, path, watch)}
}

func pathOnly(code int32, name, path string) Op {
	return Op{Code: code, Body: Str(path), Text: fmt.Sprintf("%s %q", name, path)}
}

// Delete deletes a node.
func Delete(path string, version int32) Op {
	return pathAndInt(OpDelete, "delete", path, "version", version)
}

// Check compares a node's version. It is valid only inside Multi.
func Check(path string, version int32) Op {
	return pathAndInt(OpCheck, "check", path, "version", version)
}

// Exists asks for a node's Stat.
func Exists(path string, watch bool) Op { return pathAndWatch(OpExists, "exists", path, watch) }

// GetData asks for a node's data and Stat.
func GetData(path string, watch bool) Op { return pathAndWatch(OpGetData, "getData", path, watch) }

// GetChildren asks for the names of a node's children.
func GetChildren(path string, watch bool) Op {
	return pathAndWatch(OpGetChildren, "getChildren", path, watch)
}

// GetChildren2 asks for the names of a node's children and its Stat.
func GetChildren2(path string, watch bool) Op {
	return pathAndWatch(OpGetChildren2, "getChildren2", path, watch)
}

// SetData replaces a node's data.
func SetData(path string, data []byte, version int32) Op {
	return Op{
		Code: OpSetData, Body: Join(Str(path), Buf(data), Int(version)),
		Text: fmt.Sprintf("setData %q data=%s version=%d", path, Quote(data), version),
	}
}

// GetACL asks for a node's ACL and Stat.
func GetACL(path string) Op { return pathOnly(OpGetACL, "getACL", path) }

// SetACL replaces a node's ACL.
func SetACL(path string, acl []ACL, version int32) Op {
	return Op{
		Code: OpSetACL, Body: Join(Str(path), ACLs(acl), Int(version)),
		Text: fmt.Sprintf("setACL %q acl=%v version=%d", path, acl, version),
	}
}

// Sync waits until the server has applied everything that was committed before.
func Sync(path string) Op { return pathOnly(OpSync, "sync", path) }

// GetEphemerals asks for the session's ephemeral nodes with paths that start with prefix.
func GetEphemerals(prefix string) Op { return pathOnly(OpGetEphemerals, "getEphemerals", prefix) }

// GetAllChildrenNumber asks for the number of a node's descendants.
func GetAllChildrenNumber(path string) Op {
	return pathOnly(OpGetAllChildrenNumber, "getAllChildrenNumber", path)
}

// Ping keeps the session alive.
func Ping() Op { return Op{Code: OpPing, Text: "ping"} }

// WhoAmI asks for the connection's identities.
func WhoAmI() Op { return Op{Code: OpWhoAmI, Text: "whoAmI"} }

// CloseSession ends the session.
func CloseSession() Op { return Op{Code: OpCloseSession, Text: "closeSession"} }

// CheckWatches asks whether the session has a watch of the given type.
func CheckWatches(path string, kind int32) Op {
	return pathAndInt(OpCheckWatches, "checkWatches", path, "type", kind)
}

// RemoveWatches removes watches of the given type.
func RemoveWatches(path string, kind int32) Op {
	return pathAndInt(OpRemoveWatches, "removeWatches", path, "type", kind)
}

// AddWatch sets a watch that stays: mode 0 is persistent, 1 recursive.
func AddWatch(path string, mode int32) Op {
	return pathAndInt(OpAddWatch, "addWatch", path, "mode", mode)
}
