package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// Op is one operation of a transaction. CreateOp, SetOp, DeleteOp and CheckOp return one. Curator:
// CuratorOp.
type Op interface {
	fmt.Stringer // returns the operation and the path
	prepare(o ops) preparedOp
}

// preparedOp is an Op in the form in which it is sent.
type preparedOp struct {
	part
	conditional bool // a second transaction with it would fail
	err         error
}

// Result is the result of one operation of a transaction, or of CreateResult.
type Result struct {
	Path  string   // of a create: the path of the node
	Czxid int64    // of a create: this transaction, which created the node; 0 if the answer was lost
	Stat  *zk.Stat // of a set, also one of OrSet: as of this operation
	Err   error    // of a failed transaction: the reason, or ErrRolledBack if another operation is the cause
}

type createOp struct {
	path string
	data []byte
	opts []CreateOption
}

// CreateOp returns an operation that creates a node. With Parents the transaction also creates the
// missing parents of the node; they have no results. As with Create, the root of a namespace is such a
// parent without Parents, too. The options Container, TTL and OrSet are errors in a transaction.
func CreateOp(path string, data []byte, opts ...CreateOption) Op { return createOp{path, data, opts} }

func (op createOp) String() string { return "create " + op.path }

func (op createOp) prepare(o ops) preparedOp {
	node := o.creation(op.path, op.data, op.opts)
	if node.err == nil && (node.container || node.ttl != 0 || node.orSet) {
		node.err = invalid("create %s: Container, TTL and OrSet are not allowed in a transaction", op.path)
	}
	return preparedOp{part: partOf(&node), err: node.err}
}

type setOp struct {
	path    string
	data    []byte
	version int32
}

// SetOp returns an operation that writes a node's data if its version is the given one; -1 stands
// for any.
func SetOp(path string, data []byte, version int32) Op { return setOp{path, data, version} }

func (op setOp) String() string { return "set " + op.path }

func (op setOp) prepare(o ops) preparedOp {
	c := o.call("set", op.path, once)
	return preparedOp{
		part: part{
			request: &zk.SetDataRequest{Path: c.full, Data: op.data, Version: op.version},
			size:    len(c.full) + len(op.data) + multiOverhead,
		},
		conditional: op.version != anyVersion,
		err:         c.err,
	}
}

type deleteOp struct {
	path    string
	version int32
}

// DeleteOp returns an operation that deletes a node if its version is the given one; -1 stands for
// any.
func DeleteOp(path string, version int32) Op { return deleteOp{path, version} }

func (op deleteOp) String() string { return "delete " + op.path }

func (op deleteOp) prepare(o ops) preparedOp {
	c := o.call("delete", op.path, once)
	return preparedOp{
		part: part{
			request: &zk.DeleteRequest{Path: c.full, Version: op.version},
			size:    len(c.full) + multiOverhead,
		},
		conditional: op.version != anyVersion,
		err:         c.err,
	}
}

type checkOp struct {
	path    string
	version int32
}

// CheckOp returns an operation that makes the transaction fail unless the node exists and has the
// given version; -1 stands for any.
func CheckOp(path string, version int32) Op { return checkOp{path, version} }

func (op checkOp) String() string { return "check " + op.path }

func (op checkOp) prepare(o ops) preparedOp {
	c := o.call("check", op.path, once)
	return preparedOp{
		part: part{
			request: &zk.CheckVersionRequest{Path: c.full, Version: op.version},
			size:    len(c.full) + multiOverhead,
		},
		err: c.err,
	}
}

// transaction holds the arguments of a Multi.
type transaction struct {
	ops       []Op
	parts     []part     // of ops, in their order
	nodes     []creation // of the creates
	creates   []int      // their indices in ops
	call      call
	ephemeral bool // it creates an ephemeral node
	size      int
}

func (o ops) transaction(list []Op) transaction {
	t := transaction{ops: list, call: call{name: "multi", class: once}}
	if len(list) == 0 {
		t.call.err = invalid("no operations")
	}
	for i, op := range list {
		if op == nil {
			t.call = t.call.require(invalid("operation %d is nil", i))
			continue
		}
		p := op.prepare(o)
		t.call = t.call.require(inOperation(op, p.err))
		t.parts = append(t.parts, p.part)
		t.size += p.size
		if p.conditional {
			t.call.class = repeatable
		}
		if p.node != nil {
			t.nodes, t.creates = append(t.nodes, *p.node), append(t.creates, i)
			t.ephemeral = t.ephemeral || p.node.ephemeral()
		}
	}
	t.call = t.call.require(checkSize(t.size))
	return t
}

// multiOverhead is room for the headers and lengths of one operation in a transaction.
const multiOverhead = 32

func inOperation(op Op, err error) error {
	if err == nil {
		return nil
	}
	return notApplied(fmt.Errorf("%s: %w", op, err))
}

// Multi applies all operations or none, in one transaction. If it fails, its error is that of the
// operation that is the cause, and the results show which one that is. The results are nil if no
// request was sent or no answer came.
//
// After an unknown outcome Multi is repeated only in two cases:
//
//   - It contains a protected create. Then the client looks for the node. If the node is
//     there, the transaction was applied; the results then have the paths of protected
//     creates but no Stat.
//   - It contains a set or delete with a version. Then zk.ErrBadVersion or zk.ErrNoNode with
//     an Unknown outcome may mean that an earlier attempt was applied.
//
// A transaction that creates an ephemeral node is made in the session that was current at the first
// attempt, or not at all. Curator: transaction.
func (o ops) Multi(ctx context.Context, list ...Op) ([]Result, error) {
	if err := o.checkUsable(ctx); err != nil {
		return nil, &Error{"multi", "", NotApplied, err}
	}
	t := o.transaction(list)
	if t.ephemeral {
		var err error
		if o, err = o.bind(ctx, t.call); err != nil {
			return nil, err
		}
	}
	var failed []Result
	results, err := protect(ctx, o, t.call, t.nodes,
		func(ctx context.Context, s *session, late func([]Result, error)) ([]Result, error) {
			results, err := o.transact(ctx, s, t.parts, late)
			failed = results
			return results, t.nameCause(results, err)
		},
		t.foundResults, t.created)
	if err != nil {
		return failed, err
	}
	for i := range results {
		if path := &results[i].Path; *path != "" {
			*path = znode.Strip(o.root, *path)
		}
	}
	return results, nil
}

// partResults returns the results of a transaction's operations from the reply.
func partResults(reply conn.Reply, requests []any) ([]Result, error) {
	responses, err := reply.Results(requests)
	if responses == nil {
		return nil, err
	}
	results := make([]Result, len(responses))
	cause := -1
	for i, r := range responses {
		results[i] = Result{Stat: r.Stat, Err: replyError(r.Error)}
		if r.String != "" {
			results[i].Path, results[i].Czxid = r.String, reply.Zxid
		}
		if r.Error != nil && cause < 0 {
			cause = i
		}
	}
	if err == nil || cause < 0 {
		return results, err
	}
	for i := range cause {
		results[i].Err = ErrRolledBack
	}
	return results, err
}

// isCause reports whether r is of the operation that is the cause of a failure.
func isCause(r Result) bool { return r.Err != nil && !errors.Is(r.Err, ErrRolledBack) }

// nameCause adds the operation that is the cause to the error of a transaction.
func (t transaction) nameCause(results []Result, err error) error {
	i := slices.IndexFunc(results, isCause)
	if err == nil || i < 0 {
		return err
	}
	return fmt.Errorf("%s: %w", t.ops[i], err)
}

// foundResults returns the results of a transaction after a lost answer, from the nodes that were
// found.
func (t transaction) foundResults(found []string) []Result {
	if found == nil {
		return nil
	}
	results := make([]Result, len(t.ops))
	for i, full := range found {
		results[t.creates[i]].Path = full
	}
	return results
}

// created returns the full paths of the nodes that t created.
func (t transaction) created(results []Result) (all owned) {
	if len(results) != len(t.ops) {
		return all
	}
	for _, i := range t.creates {
		if path := results[i].Path; path != "" {
			all.paths, all.czxid = append(all.paths, path), results[i].Czxid
		}
	}
	return all
}
