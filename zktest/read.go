package zktest

import (
	"strings"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/tree"
)

// The requests that change no node. Callers hold srv.mu.

// sync waits until the client's follower has all transactions of the leader. A leader answers its
// own clients at once, also while it has not applied transactions that followers have applied.
func (c *conn) sync(req *proto.Request) answer {
	wait := c.srv.zxid
	if c.replica.role != following {
		wait = c.replica.applied
	}
	return answer{wait: wait, body: func(e *proto.Encoder) {
		if req.Null {
			e.Buffer(nil)
			return
		}
		e.String(req.Path)
	}}
}

// exists also sets its watch on a node that does not exist.
func (c *conn) exists(req *proto.Request) answer {
	stat, code := c.replica.tree.Exists(req.Path, c.ids)
	if req.Watch && (code == proto.OK || code == proto.NoNode) {
		c.replica.watches.Data(req.Path, c)
	}
	return answer{code: code, body: func(e *proto.Encoder) { e.Stat(stat) }}
}

func (c *conn) getData(req *proto.Request) answer {
	data, stat, code := c.replica.tree.Data(req.Path, c.ids)
	if req.Watch && code == proto.OK {
		c.replica.watches.Data(req.Path, c)
	}
	return answer{code: code, body: func(e *proto.Encoder) {
		e.Buffer(data)
		e.Stat(stat)
	}}
}

func (c *conn) getChildren(req *proto.Request) answer {
	names, stat, code := c.replica.tree.Children(req.Path, c.ids)
	if req.Watch && code == proto.OK {
		c.replica.watches.Children(req.Path, c)
	}
	return answer{code: code, body: func(e *proto.Encoder) {
		e.Strings(names)
		if req.Op == fault.OpGetChildren2 {
			e.Stat(stat)
		}
	}}
}

func (c *conn) getACL(req *proto.Request) answer {
	acl, stat, code := c.replica.tree.ACL(req.Path, c.ids)
	return answer{code: code, body: func(e *proto.Encoder) {
		e.ACLs(acl)
		e.Stat(stat)
	}}
}

// multiRead answers each part separately, and sets no watches.
func (c *conn) multiRead(req *proto.Request) answer {
	var body proto.Encoder
	for _, part := range req.Parts {
		part.Watch = false
		ans := kinds[part.Op].handle(c, &part)
		if ans.code != proto.OK {
			body.FailedPart(ans.code)
			continue
		}
		body.Part(part.Op, proto.OK)
		ans.body(&body)
	}
	body.EndOfParts()
	return answer{body: func(e *proto.Encoder) { *e = append(*e, body...) }}
}

func (c *conn) getEphemerals(req *proto.Request) answer {
	var own []string
	for _, path := range c.replica.tree.Ephemerals(c.session.id) {
		if req.Path == "" || strings.HasPrefix(path, req.Path) {
			own = append(own, path)
		}
	}
	return answer{body: func(e *proto.Encoder) { e.Strings(own) }}
}

func (c *conn) countBelow(req *proto.Request) answer {
	count, code := c.replica.tree.CountBelow(req.Path, c.ids)
	return answer{code: code, body: func(e *proto.Encoder) { e.Int(int32(count)) }}
}

// whoAmI returns the client's identities, without the hashes of passwords.
func (c *conn) whoAmI(*proto.Request) answer {
	ids := c.ids
	return answer{body: func(e *proto.Encoder) {
		e.Int(int32(len(ids)))
		for _, id := range ids {
			user := id.ID
			if id.Scheme == "digest" {
				user, _, _ = strings.Cut(user, ":")
			}
			e.String(id.Scheme)
			e.String(user)
		}
	}}
}

// auth adds an identity to the client. If it fails, the connection ends.
func (c *conn) auth(req *proto.Request) answer {
	ans := answer{fixed: true}
	switch {
	case req.Scheme == "digest" && req.Data != nil:
		id := tree.Digest(proto.Text(req.Data))
		if id == c.srv.cfg.superDigest {
			c.addID(proto.ID{Scheme: tree.SuperScheme})
		}
		c.addID(proto.ID{Scheme: "digest", ID: id})
	case req.Scheme == "ip":
		c.addID(proto.ID{Scheme: "ip", ID: hostOf(c.net.RemoteAddr())})
	default:
		ans.code, ans.close = proto.AuthFailed, true
	}
	return ans
}

// addID adds an identity in a new slice, because pending requests share the old one.
func (c *conn) addID(id proto.ID) {
	for _, have := range c.ids {
		if have == id {
			return
		}
	}
	c.ids = append(c.ids[:len(c.ids):len(c.ids)], id)
}

// sasl answers a login without a configuration for SASL: like the real server, it succeeds and adds
// no identity.
func (c *conn) sasl(req *proto.Request) answer {
	if req.Data == nil {
		return answer{silent: true, close: true}
	}
	return answer{fixed: true, body: func(e *proto.Encoder) { e.Buffer(nil) }}
}

// setWatches sets the watches of a client that has reconnected, and sends the events that it has
// missed.
func (c *conn) setWatches(req *proto.Request) answer {
	set := []func(path string, zxid int64){
		c.setDataWatch, c.setExistsWatch, c.setChildWatch, c.setPersistent, c.setRecursive,
	}
	for i, list := range req.Watches {
		if list.Null {
			return answer{code: proto.Marshalling}
		}
		for _, path := range list.Paths {
			set[i](path, req.Zxid)
		}
	}
	return answer{}
}

func (c *conn) setDataWatch(path string, zxid int64) {
	switch stat := c.replica.tree.Watched(path); {
	case stat == nil:
		c.event(-1, proto.EventDeleted, path)
	case stat.Mzxid > zxid:
		c.event(-1, proto.EventDataChanged, path)
	default:
		c.replica.watches.Data(path, c)
	}
}

func (c *conn) setExistsWatch(path string, _ int64) {
	if c.replica.tree.Watched(path) != nil {
		c.event(-1, proto.EventCreated, path)
		return
	}
	c.replica.watches.Data(path, c)
}

func (c *conn) setChildWatch(path string, zxid int64) {
	switch stat := c.replica.tree.Watched(path); {
	case stat == nil:
		c.event(-1, proto.EventDeleted, path)
	case stat.Pzxid > zxid:
		c.event(-1, proto.EventChildrenChanged, path)
	default:
		c.replica.watches.Children(path, c)
	}
}

func (c *conn) setPersistent(path string, _ int64) { c.replica.watches.Persistent(path, c) }

func (c *conn) setRecursive(path string, _ int64) { c.replica.watches.Recursive(path, c) }

func (c *conn) addWatch(req *proto.Request) answer {
	switch req.Mode {
	case proto.ModePersistent:
		c.replica.watches.Persistent(req.Path, c)
	case proto.ModeRecursive:
		c.replica.watches.Recursive(req.Path, c)
	default:
		return answer{code: proto.Marshalling}
	}
	return answer{body: func(e *proto.Encoder) { e.Int(0) }}
}

func (c *conn) checkWatches(req *proto.Request) answer {
	if c.srv.cfg.compat == V38 && req.Path != "" && c.replica.watches.Stumbles(req.Path, c, req.Mode) {
		return answer{code: proto.Marshalling}
	}
	return c.findWatch(req, c.replica.watches.Has)
}

func (c *conn) removeWatches(req *proto.Request) answer {
	return c.findWatch(req, c.replica.watches.Remove)
}

func (c *conn) findWatch(req *proto.Request, find func(string, *conn, int32) bool) answer {
	switch {
	case !c.replica.watches.Known(req.Mode):
		return answer{code: proto.Marshalling}
	case !find(req.Path, c, req.Mode), req.Op == fault.OpCheckWatches && req.Path == "" && c.srv.cfg.compat == V38:
		return answer{code: proto.NoWatcher}
	}
	return answer{}
}
