package framework

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// DeleteGuaranteed deletes a node whose name is not used twice, such as a sequential or protected one, whatever its version: once
// called, the deletion goes on in the background until the node is gone, the server refuses it or a credential, the client is closed, or,
// for the operation of a Session, the session is over. ctx bounds only the wait: when it ends the outcome is unknown. A node that was not
// there to begin with is zk.ErrNoNode. Several nodes are deleted in one transaction, or if the servers refuse some of them or do not have
// them, the others; among them may be ephemeral ones that are not protected and whose names are used again, if they were created with
// one that is protected: a repetition deletes only what can be told from a later node of that name. Curator: guaranteed.
func (o ops) DeleteGuaranteed(ctx context.Context, paths ...string) error {
	c, full := o.deletions(paths)
	if err := o.usable(ctx); err != nil {
		return c.failed(NotApplied, err)
	}
	if c.err != nil {
		return c.failed(NotApplied, c.err)
	}
	select {
	case err := <-o.deletion(c, full):
		return err
	case <-ctx.Done():
		return c.failed(Unknown, ctxerr.Of(ctx))
	}
}

// DeleteLater is DeleteGuaranteed for those who do not wait: what goes wrong is only logged. It is for recipes.
func (o ops) DeleteLater(paths ...string) {
	c, full := o.deletions(paths)
	if o.usable(context.Background()) == nil && c.err == nil {
		o.deletion(c, full)
	}
}

// deletions is the call that deletes paths, and their paths on the servers.
func (o ops) deletions(paths []string) (c call, full []string) {
	if len(paths) == 0 {
		return call{name: "delete", err: invalid("no paths")}, nil
	}
	size := 0
	for i, path := range paths {
		one := o.call("delete", path, repeatable)
		if i == 0 {
			c = one
		}
		c = c.require(one.err)
		full = append(full, one.full)
		size += len(one.full) + multiOverhead
	}
	return c.require(checkSize(size)), full
}

// deletion deletes nodes in the background.
func (o ops) deletion(c call, full []string) <-chan error {
	d := &deletion{left: slices.Clone(full), mixed: slices.ContainsFunc(full, protected)}
	return o.errand(c, d.attempt)
}

// deletion is what is left of some nodes that are to be deleted.
type deletion struct {
	left             []string
	mixed            bool             // some of all are protected
	own              map[string]int64 // the incarnations of those left when no protected ones were left; nil before
	doubtful         bool             // an attempt may have been applied, or may still be
	missing, refused error
}

// attempt deletes what it can. Its error is that of a deletion to be attempted again, or in the end what there is to tell.
func (d *deletion) attempt(ctx context.Context, s *session) error {
	for {
		if err := d.spare(ctx, s); err != nil {
			return err
		}
		if len(d.left) == 0 {
			return cmp.Or(d.refused, d.missing)
		}
		i, err := s.deleteAll(ctx, d.left)
		switch {
		case err == nil:
			d.left = nil
			continue
		case isRefusal(err):
			d.refused = err
		case !isNoNode(err):
			d.doubtful = d.doubtful || OutcomeOf(err) == Unknown
			return err
		case !d.doubtful:
			d.missing = err
		}
		d.left = slices.Delete(d.left, i, i+1)
	}
}

// spare leaves out nodes whose names are used again, and that may be others' by now: those that went with a protected one, which is gone.
func (d *deletion) spare(ctx context.Context, s *session) error {
	if !d.mixed || slices.ContainsFunc(d.left, protected) {
		return nil
	}
	if d.own == nil && d.doubtful {
		d.left = nil // they may have gone with it
		return nil
	}
	now, err := s.incarnations(ctx, d.left)
	if err != nil {
		return err
	}
	if d.own == nil {
		d.own = now
	}
	d.left = slices.DeleteFunc(d.left, func(path string) bool { return d.own[path] == 0 || d.own[path] != now[path] })
	return nil
}

// incarnations are the transactions that created nodes, of those that are there.
func (s *session) incarnations(ctx context.Context, full []string) (map[string]int64, error) {
	czxids := map[string]int64{}
	for _, path := range full {
		if err := s.sync(ctx, path); err != nil {
			return nil, err
		}
		r, err := s.read(ctx, watchKey{path, watchExists})
		if err != nil {
			return nil, err
		}
		if r.stat != nil {
			czxids[path] = r.stat.Czxid
		}
	}
	return czxids, nil
}

func protected(path string) bool {
	_, ok := znode.GUIDOf(znode.Base(path))
	return ok
}

// deleteAll deletes nodes in one request, or none. If it is because of one of them that it cannot, it says which.
func (s *session) deleteAll(ctx context.Context, full []string) (which int, err error) {
	if len(full) == 1 {
		return 0, s.delete(ctx, full[0], -1)
	}
	var requests []any
	for _, path := range full {
		requests = append(requests, &zk.DeleteRequest{Path: path, Version: -1})
	}
	return attempt(ctx, s, nil, func(c *zk.Conn) (int, error) {
		responses, err := c.Multi(requests...)
		return max(0, slices.IndexFunc(responses, func(r zk.MultiResponse) bool { return r.Error != nil })), err
	})
}

// deleteFound deletes nodes that were there a moment ago.
func (s *session) deleteFound(ctx context.Context, full []string) error {
	var refused error
	for len(full) > 0 {
		i, err := s.deleteAll(ctx, full)
		switch {
		case err == nil:
			return refused
		case isRefusal(err):
			refused = err
		case !isNoNode(err):
			return err
		}
		full = slices.Delete(full, i, i+1)
	}
	return refused
}

// isRefusal reports whether the servers do not delete a node that is there.
func isRefusal(err error) bool { return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty) }
