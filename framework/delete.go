package framework

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// DeleteGuaranteed deletes nodes of any version, and retries in the background until they are
// deleted. Use it only for names that are not used twice, such as sequential or protected ones: a
// retry could delete a later node of the same name. The deletion ends early if the servers refuse
// it or a credential, or if the client is closed. A Session's deletion also ends with the session.
//
// ctx limits only the wait: when it ends, the outcome is unknown and the deletion continues.
// Several nodes are deleted in one transaction. If the servers refuse some of them, or do not have
// them, the others are deleted. If a node did not exist to begin with, the error matches
// zk.ErrNoNode. Curator: guaranteed.
func (o ops) DeleteGuaranteed(ctx context.Context, paths ...string) error {
	c, full := o.deletions(paths)
	if err := o.checkUsable(ctx); err != nil {
		return c.failed(NotApplied, err)
	}
	if c.err != nil {
		return c.failed(NotApplied, c.err)
	}
	d := &deletion{left: full}
	if o.bound != nil { // one attempt is nearly always enough, and needs no goroutine
		if err := o.firstAttempt(ctx, c, d); err == nil {
			return nil
		} else if ctx.Err() == nil && !o.repeats(err, repeatable) {
			o.logFailure(c, err)
			return c.failed(OutcomeOf(err), err)
		}
	}
	select {
	case err := <-o.runInBackground(c, d.attempt):
		return err
	case <-ctx.Done():
		return c.failed(Unknown, ctxerr.Of(ctx))
	}
}

// firstAttempt makes an attempt in the caller's goroutine. It is measured like those of a
// background task. If the metrics of the program panic or end the goroutine, the deletion goes on in the
// background.
func (o ops) firstAttempt(ctx context.Context, c call, d *deletion) (err error) {
	ended := false
	defer func() {
		if !ended && len(d.left) > 0 {
			o.runInBackground(c, d.attempt)
		}
	}()
	o.measured(func() { err = d.attempt(ctx, o.bound) })
	ended = true
	return err
}

// measured counts a pending deletion while it calls attempt.
func (o ops) measured(attempt func()) {
	defer o.metrics().Add(metrics.PendingDeletions, -1, metrics.Labels{})
	o.metrics().Add(metrics.PendingDeletions, 1, metrics.Labels{})
	attempt()
}

// deleteLater is DeleteGuaranteed without a wait. It logs failures.
func (o ops) deleteLater(paths ...string) {
	c, full := o.deletions(paths)
	if o.checkUsable(context.Background()) == nil && c.err == nil {
		o.runInBackground(c, (&deletion{left: full}).attempt)
	}
}

// deletions returns the call that deletes paths, and their full paths.
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

// deletion holds the nodes that are still to be deleted.
type deletion struct {
	left             []string
	uncertain        bool // after an unknown outcome: a missing node counts as deleted
	missing, refused error
}

// attempt deletes as many nodes as it can. If nodes are left, it returns the error of the last
// request and may be called again. Otherwise it returns a refusal or zk.ErrNoNode, if there was
// one.
func (d *deletion) attempt(ctx context.Context, s *session) error {
	for len(d.left) > 0 {
		i, err := s.deleteAll(ctx, d.left)
		switch {
		case err == nil:
			d.left = nil
			continue
		case ctx.Err() == nil && isRefusal(err):
			d.refused = err
		case ctx.Err() != nil || !isNoNode(err): // the cause of an ended context may match ErrNoNode
			d.uncertain = d.uncertain || OutcomeOf(err) == Unknown
			return err
		case !d.uncertain:
			d.missing = err
		}
		d.left = slices.Delete(d.left, i, i+1)
	}
	return cmp.Or(d.refused, d.missing)
}

// deleteAll deletes all nodes or none in one request. which is the index of the node that caused
// the error.
func (s *session) deleteAll(ctx context.Context, full []string) (which int, err error) {
	if len(full) == 1 {
		return 0, s.delete(ctx, full[0], -1)
	}
	var parts []any
	for _, path := range full {
		parts = append(parts, &zk.DeleteRequest{Path: path, Version: -1})
	}
	request, err := conn.Multi(parts)
	if err != nil {
		return 0, notApplied(err)
	}
	return ask(ctx, s, nil, request, func(r conn.Reply) (int, error) {
		results, err := r.Results(parts)
		return max(0, slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })), err
	})
}

// isRefusal reports whether the servers refuse to delete an existing node.
func isRefusal(err error) bool { return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty) }
