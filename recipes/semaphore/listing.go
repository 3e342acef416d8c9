package semaphore

import (
	"context"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// listing is the leases as they were read before permits are taken. A server may have been behind,
// so a transaction that relies on a listing proves that no lease was added since: the version of
// the directory is the same, which each acquire increases, and the directory is the same, which its
// version does not show. No transaction relies on the zero listing.
type listing struct {
	names  []string
	stat   *zk.Stat // of the directory
	synced bool     // it was read after a sync at the front of the queue, so there is nothing to prove
}

// checkable reports whether a transaction can check the version: it is negative after 2^31
// acquires.
func (l listing) checkable() bool { return l.stat.Version >= 0 }

// unproved reports whether the transaction has to prove it.
func (l listing) unproved() bool { return l.stat != nil && !l.synced }

// check returns the operation by which a transaction fails if leases were added to dir.
func (l listing) check(dir string) []framework.Op {
	if !l.unproved() {
		return nil
	}
	return []framework.Op{framework.CheckOp(dir, l.stat.Version)}
}

// confirm returns enqueue.ErrRetry if a transaction that created n leases, and found the version of
// the directory as in the listing, found another directory. after is the directory's Stat as of the
// transaction; nil if its answer was lost, or if the directory cannot be written. The lease that
// was created keeps the directory from being deleted, so it can be read later.
func (a *admission) confirm(ctx context.Context, s *framework.Session, seen listing, after *zk.Stat) error {
	if !seen.unproved() {
		return nil
	}
	if after != nil {
		return again(!seen.precedes(after, a.n))
	}
	if a.leasesDir.ReadOnly() {
		return enqueue.ErrRetry // its version proves nothing
	}
	stat, err := queue.RetryInSession(ctx, s, func(ctx context.Context) (*zk.Stat, error) {
		return s.Exists(ctx, a.leases.Path())
	})
	if err != nil {
		return err
	}
	return again(!seen.precedes(stat, a.n))
}

func again(changed bool) error {
	if changed {
		return enqueue.ErrRetry
	}
	return nil
}

// precedes reports whether after is the same directory with n children created since. The number of
// children created shows also leases of Curator, which writes no version. It does not change any
// more at the end of the counter.
func (l listing) precedes(after *zk.Stat, n int) bool {
	before := created(l.stat)
	return after.Czxid == l.stat.Czxid && (created(after) == before+n || before+n >= math.MaxInt32)
}

// created returns how many children a node has ever had. Cversion counts those created and those
// deleted, as a number that wraps around.
func created(stat *zk.Stat) int { return int(uint32(stat.Cversion+stat.NumChildren) / 2) }
