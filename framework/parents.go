package framework

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// A create with Parents is first sent without them, because the parent usually exists. If the
// servers answer that it is missing, one transaction creates the parent and the node. If the node
// above is missing too, the next transaction has one operation more, and so on upwards. So each
// missing node costs one request, and no permission is needed above an existing node.

// maxParents is how many parents one transaction creates at most. More of them are created one by
// one before it, because each missing node would cost another request of the size of the whole.
const maxParents = 8

// part is one operation of a transaction as it is sent. The parts that create parents are in front
// of the part that needs them.
type part struct {
	request any       // nil for a create
	node    *creation // of a create
	parent  bool      // it creates a parent
	size    int
}

// partOf returns the part that creates a node.
func partOf(node *creation) part {
	return part{node: node, size: len(node.full) + len(node.data) + aclSize(node.acl) + multiOverhead}
}

// parentOf returns the part that creates the parent of a node.
func (o ops) parentOf(node *creation) part {
	full := znode.Parent(node.full)
	p := partOf(&creation{full: full, data: []byte{}, acl: o.core.acl(full), container: true, parents: true})
	p.parent = true
	return p
}

// createsParents reports whether missing parents of a node are created: Parents was given, or the
// parent is the root of a namespace.
func (o ops) createsParents(node *creation) bool {
	parent := znode.Parent(node.full)
	return parent != "/" && (node.parents || parent == o.root && o.namespace != "")
}

// createWithParents creates a node whose parent is missing.
func (o ops) createWithParents(
	ctx context.Context, s *session, node *creation, late func(Result, error),
) (Result, error) {
	first := func(results []Result) Result {
		if len(results) == 0 {
			return Result{}
		}
		return results[0]
	}
	var lateResults func([]Result, error)
	if late != nil {
		lateResults = func(results []Result, err error) { late(first(results), err) }
	}
	results, err := o.transact(ctx, s, []part{o.parentOf(node), partOf(node)}, lateResults)
	return first(results), err
}

// transact makes a transaction, and repeats it with other parts as long as parents are missing. The
// results are those of the parts that create no parents. The paths in them are those on the servers.
func (o ops) transact(
	ctx context.Context, s *session, parts []part, late func([]Result, error),
) ([]Result, error) {
	refused := false // the ACL of the node above refused a parent; the parent may exist all the same
	for left := maxEnsures; ; {
		if !areSendable(parts) {
			var err error
			if parts, err = o.ensureParents(ctx, s, parts); err != nil {
				return nil, err
			}
		}
		results, err := s.sendParts(ctx, parts, late)
		failed := slices.IndexFunc(results, isCause)
		refusedNow := failed >= 0 && parts[failed].parent && !createsParentOf(parts, failed) &&
			errors.Is(err, zk.ErrNoAuth)
		switch {
		case err == nil:
			return ownResults(parts, results), nil
		case o.missesParent(parts, failed, err) && left > 0:
			parts = slices.Insert(slices.Clone(parts), failed, o.parentOf(parts[failed].node))
			if !areSendable(parts) {
				left--
			}
		case failed >= 0 && parts[failed].parent && errors.Is(err, zk.ErrNodeExists), refusedNow && !refused:
			left--
			refused = refused || refusedNow
			parts = slices.Delete(slices.Clone(parts), failed, failed+1)
		case refusesContainers(parts, failed, err) && left > 0:
			left--
			if parts, err = o.ensureParents(ctx, s, parts); err != nil {
				return nil, err
			}
		default:
			return ownResults(parts, results), err
		}
	}
}

// missesParent reports whether a part has failed because a parent is missing that no part creates
// yet.
func (o ops) missesParent(parts []part, failed int, err error) bool {
	return failed >= 0 && isNoNode(err) && parts[failed].node != nil && o.createsParents(parts[failed].node) &&
		!createsParentOf(parts, failed)
}

// createsParentOf reports whether the parent of part i is created by the part in front of it.
func createsParentOf(parts []part, i int) bool {
	return i > 0 && parts[i-1].parent && parts[i-1].node.full == znode.Parent(parts[i].node.full)
}

// refusesContainers reports whether err may be the answer of servers that do not know containers.
func refusesContainers(parts []part, failed int, err error) bool {
	isContainer := func(p part) bool { return p.node != nil && p.node.container }
	return errors.Is(err, zk.ErrBadArguments) && slices.ContainsFunc(parts, isContainer) &&
		(failed < 0 || isContainer(parts[failed]))
}

// areSendable reports whether a transaction may have these parts.
func areSendable(parts []part) bool {
	parents, size := 0, 0
	for _, p := range parts {
		size += p.size
		if p.parent {
			parents++
		}
	}
	return parents <= maxParents && checkSize(size) == nil
}

// ensureParents creates the missing parents of all nodes one by one, and returns the parts that create
// no parents.
func (o ops) ensureParents(ctx context.Context, s *session, parts []part) ([]part, error) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.parent })
	ensured := map[string]bool{}
	for _, p := range parts {
		if p.node == nil || !o.createsParents(p.node) {
			continue
		}
		parent := znode.Parent(p.node.full)
		if ensured[parent] {
			continue
		}
		if err := o.ensure(ctx, s, parent); err != nil {
			// The transaction was not applied. Whether the parents were created does not matter: they may
			// be created twice.
			return nil, &attemptError{outcome: NotApplied, transient: IsTransient(err), err: err}
		}
		ensured[parent] = true
	}
	return parts, nil
}

// sendParts makes one request for a transaction. The results are those of all parts.
func (s *session) sendParts(ctx context.Context, parts []part, late func([]Result, error)) ([]Result, error) {
	requests := make([]any, len(parts))
	for i, p := range parts {
		if requests[i] = p.request; p.node != nil {
			requests[i] = p.node.operation(s.core.noContainers.Load())
		}
	}
	request, err := conn.Multi(requests)
	if err != nil {
		return nil, notApplied(err)
	}
	var lateOwn func([]Result, error)
	if late != nil {
		lateOwn = func(results []Result, err error) { late(ownResults(parts, results), err) }
	}
	behind := func() {
		for i, p := range parts {
			// Nothing is read behind the create of a node whose parent is as new: it is the first child.
			if p.node != nil && p.node.behind != nil && !createsParentOf(parts, i) {
				p.node.behind()
			}
		}
	}
	return askThen(ctx, s, lateOwn, request, behind, func(r conn.Reply) ([]Result, error) {
		return partResults(r, requests)
	})
}

// ownResults returns the results of the parts that create no parents. If a parent was refused, the
// part that needs it gets the error.
func ownResults(parts []part, results []Result) (own []Result) {
	if len(results) != len(parts) {
		return nil
	}
	var refused error
	for i, r := range results {
		if parts[i].parent {
			if isCause(r) {
				refused = r.Err
			}
			continue
		}
		if refused != nil {
			r.Err, refused = refused, nil
		}
		own = append(own, r)
	}
	return own
}
