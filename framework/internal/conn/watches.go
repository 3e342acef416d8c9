package conn

import "github.com/go-zookeeper/zk"

// NotSent returns the reply to a request that was not sent.
func NotSent() Reply { return Reply{err: zk.ErrNoServer} }

// AddWatch sets a persistent watch, which stays until it is removed or the connection ends. A
// recursive one is for a node and all nodes below it. In 3.8 a connection has one kind of watch for
// each path: the last one replaces the others. Servers before 3.6 close the connection after their
// reply.
func AddWatch(path string, recursive bool) Request {
	r := newRequest(opAddWatch, len(path)+8)
	r.frame.string(path)
	mode := int32(0)
	if recursive {
		mode = 1
	}
	r.frame.int(mode)
	return r
}

// The kinds of watches that RemoveWatches removes.
const (
	AnyWatch       int32 = 3
	RecursiveWatch int32 = 5 // not in 3.8, which answers with an error
)

// RemoveWatches removes watches of one path.
func RemoveWatches(path string, kind int32) Request {
	r := newRequest(opRemoveWatches, len(path)+8)
	r.frame.string(path)
	r.frame.int(kind)
	return r
}

// SetPersistent sets persistent watches on a new connection. The server sends no events for what
// has changed before.
func SetPersistent(nodes, recursive []string) Request {
	r := newRequest(opSetWatches2, zxidSize+64*(len(nodes)+len(recursive)))
	r.frame.long(0)        // only for one-shot watches
	r.frame.strings(nil)   // data
	r.frame.strings(nil)   // exists
	r.frame.strings(nil)   // children
	r.frame.strings(nodes) // an empty list has length 0, as servers want it
	r.frame.strings(recursive)
	return r
}
