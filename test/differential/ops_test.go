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

// node makes a plain node that everybody may use.
func node(path string) rawzk.Op {
	return rawzk.Create(path, []byte("x"), rawzk.Open(), rawzk.Persistent)
}

// set changes a node's data, whatever its version.
func set(path string) rawzk.Op { return rawzk.SetData(path, []byte("changed"), -1) }

// gone deletes a node, whatever its version.
func gone(path string) rawzk.Op { return rawzk.Delete(path, -1) }

// world is a list that gives everybody the same permissions.
func world(perms int32) []rawzk.ACL {
	return []rawzk.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
}

// The permissions.
const (
	permRead int32 = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
	permAll = permRead | permWrite | permCreate | permDelete | permAdmin
)

// fourCreates is one request of each kind that makes a node.
func fourCreates(path string, data []byte, acl []rawzk.ACL, flags int32, ttl int64) []rawzk.Op {
	return []rawzk.Op{
		rawzk.Create(path, data, acl, flags),
		rawzk.Create2(path, data, acl, flags),
		rawzk.CreateContainer(path, data, acl, flags),
		rawzk.CreateTTL(path, data, acl, flags, ttl),
	}
}

// bodied is a request with a body of the caller's making.
func bodied(code int32, text string, pieces ...[]byte) rawzk.Op {
	return rawzk.Op{Code: code, Body: rawzk.Join(pieces...), Text: text}
}

// oddVersions are those that no ordinary client sends, and two that one does.
var oddVersions = []int32{-1, 0, 1, -2, math.MaxInt32, math.MinInt32}

// hour is a time to live that no scenario outlives.
const hour = 3600_000
