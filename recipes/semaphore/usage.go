package semaphore

import (
	"cmp"
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// used reports whether there are permits or waiters now. If there are none, still is the operation
// by which a transaction fails if permits were created since, where leases may be written.
func (s *Semaphore) used(ctx context.Context, session *framework.Session) (inUse bool, still framework.Op, err error) {
	if err := session.Sync(ctx, s.path); err != nil {
		return false, nil, err
	}
	waiters, _, err := session.Children(ctx, s.locks.Path())
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return false, nil, err
	}
	leases, stat, err := session.Children(ctx, s.leases.Path())
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return false, nil, cmp.Or(s.leasesDir.Ensure(ctx, session), errChanged)
	case err != nil:
		return false, nil, err
	case len(waiters) > 0 || locknode.Count(leases, leaseMarker) > 0 || stat.Version < 0:
		return true, nil, nil // a negative version cannot be checked
	}
	return false, framework.CheckOp(s.leases.Path(), stat.Version), nil
}

// pinName is the ending of the name of a pin, before the number. A pin is no lease.
const pinName = "limit-"

// pin creates a node that keeps leases, and what is above it, from being deleted until it is
// withdrawn.
func (s *Semaphore) pin(ctx context.Context, session *framework.Session) (node string, err error) {
	node, err = session.Create(ctx, s.leases.Path()+"/"+pinName, s.data, enqueue.LockNodeOptions()...)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = errChanged
	}
	return node, err
}
