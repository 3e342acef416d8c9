package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// Ephemerals lists the ephemeral nodes of the session whose paths begin with prefix, in no
// particular order. A Client lists those of its current session. prefix is text, not a node: "/a"
// stands for "/ab" too, and "/" for all paths of the namespace. Servers before 3.6 do not know the
// request; the error then matches ErrUnimplemented. ZooKeeper: getEphemerals.
func (o ops) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	full := znode.JoinPrefix(o.root, prefix)
	c := call{"list ephemerals", prefix, full, repeatable, checkSize(len(full))}
	if !strings.HasPrefix(prefix, "/") {
		c.err = notApplied(fmt.Errorf("%w %q: a prefix begins with a slash", ErrInvalidPath, prefix))
	}
	all, err := run(ctx, o, c, func(ctx context.Context, s *session) ([]string, error) {
		return askRecent(ctx, s, conn.Ephemerals(full), conn.Reply.Paths)
	})
	for i, path := range all {
		all[i] = znode.Strip(o.root, path)
	}
	return all, err
}

// CountAll returns the number of nodes below a node, at all levels. The node itself does not count.
// Servers walk through all their nodes for it. If there is no such node, the error matches
// zk.ErrNoNode. Servers before 3.6 do not know the request; the error then matches
// ErrUnimplemented. ZooKeeper: getAllChildrenNumber.
func (o ops) CountAll(ctx context.Context, path string) (int, error) {
	c := o.call("count", path, repeatable)
	return run(ctx, o, c, func(ctx context.Context, s *session) (int, error) {
		return askRecent(ctx, s, conn.CountAll(c.full), conn.Reply.Count)
	})
}

// ReadOp is one read of a MultiRead. GetOp and ChildrenOp return one.
type ReadOp struct{ read conn.Read }

// GetOp returns a read of a node's data and Stat.
func GetOp(path string) ReadOp { return ReadOp{conn.Read{Path: path}} }

// ChildrenOp returns a read of the names of a node's children.
func ChildrenOp(path string) ReadOp { return ReadOp{conn.Read{Path: path, Children: true}} }

// ReadResult is the result of one read of a MultiRead.
type ReadResult struct {
	Data     []byte   // of GetOp
	Stat     *zk.Stat // of GetOp
	Children []string // of ChildrenOp, in no particular order
	Err      error    // such as zk.ErrNoNode
}

// MultiRead makes all reads in one request and returns their results in the same order. Each read
// succeeds or fails on its own, with an error in its result. The error of MultiRead is that of the
// request. Servers do not limit the size of the answer. They do not promise that all reads show the
// same moment. Servers before 3.6 do not know the request; the error then matches ErrUnimplemented.
// ZooKeeper: multi of reads.
func (o ops) MultiRead(ctx context.Context, list ...ReadOp) ([]ReadResult, error) {
	c, request, parse := o.multiRead(list)
	return run(ctx, o, c, func(ctx context.Context, s *session) ([]ReadResult, error) {
		return askRecent(ctx, s, request, parse)
	})
}

// multiRead returns the request of a MultiRead, and the function that returns the results from the
// reply.
func (o ops) multiRead(list []ReadOp) (call, conn.Request, func(conn.Reply) ([]ReadResult, error)) {
	c := call{name: "multi read", class: repeatable}
	if len(list) == 0 {
		c.err = invalid("no reads")
	}
	reads := make([]conn.Read, len(list))
	size := 0
	for i, op := range list {
		one := o.call("read", op.read.Path, repeatable)
		c = c.require(one.err)
		reads[i] = conn.Read{Path: one.full, Children: op.read.Children}
		size += len(one.full) + multiOverhead
	}
	c = c.require(checkSize(size))
	return c, conn.MultiRead(reads), func(r conn.Reply) ([]ReadResult, error) {
		all, err := r.Readings(reads)
		results := make([]ReadResult, len(all))
		for i, one := range all {
			results[i] = ReadResult{one.Data, one.Stat, one.Children, replyError(one.Err)}
		}
		return results, err
	}
}

// askRecent makes a request that servers before 3.6 do not know. They close the connection after
// their answer.
func askRecent[T any](
	ctx context.Context, s *session, r conn.Request, parse func(conn.Reply) (T, error),
) (T, error) {
	value, err := ask(ctx, s, nil, r, parse)
	if errors.Is(err, ErrUnimplemented) {
		s.awaitHangup(ctx)
	}
	return value, err
}
