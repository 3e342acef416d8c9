package inspect

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

const (
	// maxReads bounds the reads of one request. Each may have a megabyte of data, and the client refuses
	// an answer of 256.
	maxReads = 128
	// maxPathBytes bounds the paths of one request.
	maxPathBytes = 256 << 10
	// maxNames bounds the names that the lists of one request return, unless one list has more.
	maxNames = 20_000
	// maxSingle bounds the requests under way where servers do not know requests of many reads.
	maxSingle = 16
	// maxData is how much of the data of a node is kept.
	maxData = 16 << 10
)

// znode is a node as it was read.
type znode struct {
	path string
	data []byte   // at most maxData bytes
	stat *zk.Stat // nil if err is not
	err  error    // of the servers, for this node
}

// read is one read of many: of a node, or of the names of its children.
type read struct {
	path     string
	children bool
	names    int32 // about how many names a list returns
}

// reader makes reads. It sets no watches.
type reader struct {
	client *framework.Client
	single *single
	left   int // how many nodes may be read; -1: any number
}

// single notes of a client that its servers do not know requests of many reads: they close the
// connection after each.
type single struct{ only atomic.Bool }

func newReader(c *framework.Client, limit int) *reader {
	r := &reader{client: c, single: bridge.Local[single](bridge.Of(c)), left: -1}
	if limit > 0 {
		r.left = limit
	}
	return r
}

// get reads nodes. An error of one node is in its znode.
func (r *reader) get(ctx context.Context, paths []string) ([]*znode, error) {
	if r.left >= 0 {
		if r.left -= len(paths); r.left < 0 {
			r.left = 0
			return nil, ErrLimit
		}
	}
	reads := make([]read, len(paths))
	for i, path := range paths {
		reads[i] = read{path: path}
	}
	nodes := make([]*znode, 0, len(paths))
	err := r.all(ctx, reads, func(some []framework.ReadResult) {
		for _, one := range some {
			n := &znode{path: paths[len(nodes)], stat: one.Stat, err: one.Err}
			n.data = bytes.Clone(one.Data[:min(len(one.Data), maxData)]) // the rest of the answer is freed
			nodes = append(nodes, n)
		}
	})
	return nodes, err
}

// list returns the sorted names of the children of nodes, and an error for each that has none.
func (r *reader) list(ctx context.Context, nodes []*znode) (names [][]string, errs []error, err error) {
	reads := make([]read, len(nodes))
	for i, n := range nodes {
		reads[i] = read{path: n.path, children: true, names: n.stat.NumChildren}
	}
	err = r.all(ctx, reads, func(some []framework.ReadResult) {
		for _, one := range some {
			slices.Sort(one.Children)
			names, errs = append(names, one.Children), append(errs, one.Err)
		}
	})
	return names, errs, err
}

// all makes reads, as many in one request as are safe, one request after another. It calls fn with
// the results, in order.
func (r *reader) all(ctx context.Context, reads []read, fn func([]framework.ReadResult)) error {
	for len(reads) > 0 {
		n, size, names := 0, 0, int32(0)
		for n < len(reads) && n < maxReads &&
			(n == 0 || size+len(reads[n].path) <= maxPathBytes && names+reads[n].names <= maxNames) {
			size += len(reads[n].path)
			names += min(reads[n].names, maxNames)
			n++
		}
		results, err := r.some(ctx, reads[:n])
		if err != nil {
			return ctxerr.With(ctx, err)
		}
		fn(results)
		reads = reads[n:]
	}
	return nil
}

// some makes reads in one request or, where servers do not know that, in one for each.
func (r *reader) some(ctx context.Context, reads []read) ([]framework.ReadResult, error) {
	results, valid := make([]framework.ReadResult, len(reads)), make([]int, 0, len(reads))
	for i, one := range reads {
		if results[i].Err = framework.CheckPath(one.path); results[i].Err == nil {
			valid = append(valid, i)
		}
	}
	if len(valid) == 0 {
		return results, ctx.Err()
	}
	if r.single.only.Load() {
		return results, r.each(ctx, reads, results, valid)
	}
	ops := make([]framework.ReadOp, len(valid))
	for k, i := range valid {
		if ops[k] = framework.GetOp(reads[i].path); reads[i].children {
			ops[k] = framework.ChildrenOp(reads[i].path)
		}
	}
	answers, err := r.client.MultiRead(ctx, ops...)
	if ctxerr.Answered(ctx, err, framework.ErrUnimplemented) {
		r.single.only.Store(true)
		return r.some(ctx, reads)
	}
	for k, answer := range answers {
		results[valid[k]] = answer
	}
	return results, err
}

// each makes the valid ones of reads in requests of their own. The first error that is not about one
// node ends it, after the requests under way.
func (r *reader) each(ctx context.Context, reads []read, results []framework.ReadResult, valid []int) error {
	var running sync.WaitGroup
	failed := make(chan error, len(valid))
	slots := make(chan struct{}, maxSingle)
	for _, i := range valid {
		slots <- struct{}{}
		if len(failed) > 0 {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			one := &results[i]
			if reads[i].children {
				one.Children, _, one.Err = r.client.Children(ctx, reads[i].path)
			} else {
				one.Data, one.Stat, one.Err = r.client.Get(ctx, reads[i].path)
			}
			if one.Err != nil && !ofNode(ctx, one.Err) {
				failed <- one.Err
			}
		})
	}
	running.Wait()
	close(failed)
	return <-failed
}

// ofNode reports whether err is a server's answer about one node, so that others can be read.
func ofNode(ctx context.Context, err error) bool {
	return ctxerr.Answered(ctx, err, zk.ErrNoNode) || ctxerr.Answered(ctx, err, zk.ErrNoAuth)
}
