package differential

import (
	"math"

	"github.com/docent-zk/docent/internal/rawzk"
)

// each sends the requests one after the other, each after the answer to the one before.
func (c *client) each(ops ...rawzk.Op) {
	for _, op := range ops {
		c.do(op)
	}
}

// node returns a create of a persistent node that all clients may use.
func node(path string) rawzk.Op {
	return rawzk.Create(path, []byte("x"), rawzk.Open(), rawzk.Persistent)
}

// set returns a setData for any version.
func set(path string) rawzk.Op { return rawzk.SetData(path, []byte("changed"), -1) }

// del returns a delete for any version.
func del(path string) rawzk.Op { return rawzk.Delete(path, -1) }

// world returns a list with the same permissions for all clients.
func world(perms int32) []rawzk.ACL {
	return []rawzk.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
}

// These are the permissions.
const (
	permRead int32 = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
	permAll = permRead | permWrite | permCreate | permDelete | permAdmin
)

// fourCreates returns one request of each kind that creates a node.
func fourCreates(path string, data []byte, acl []rawzk.ACL, flags int32, ttl int64) []rawzk.Op {
	return []rawzk.Op{
		rawzk.Create(path, data, acl, flags),
		rawzk.Create2(path, data, acl, flags),
		rawzk.CreateContainer(path, data, acl, flags),
		rawzk.CreateTTL(path, data, acl, flags, ttl),
	}
}

// bodied returns a request with the given body.
func bodied(code int32, text string, pieces ...[]byte) rawzk.Op {
	return rawzk.Op{Code: code, Body: rawzk.Join(pieces...), Text: text}
}

// oddVersions are two ordinary versions and some that no ordinary client sends.
var oddVersions = []int32{-1, 0, 1, -2, math.MaxInt32, math.MinInt32}

// hour is a time to live in ms that is longer than any scenario.
const hour = 3600_000
