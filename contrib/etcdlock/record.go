package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/recipes"
)

// record is the key of one acquire, and of its hold, in the queue of a lock. The queue is the keys
// directly below a directory, in the order in which they were created. The first one has the lock.
type record struct {
	s        *session
	dir, key string
	rev      int64 // create revision; 0: not known
	asOf     int64 // revision at which the key was read last
	maybe    bool  // a request may have created the key, or may create it later

	ctx  context.Context // ends with the hold or the session
	lose context.CancelCauseFunc

	hold     *recipes.Hold // guarded by Client.mu
	released bool          // guarded by Client.mu
}

func newRecord(s *session, dir string) *record {
	r := &record{s: s, dir: dir, key: s.newKey(dir)}
	r.ctx, r.lose = context.WithCancelCause(s.ctx)
	return r
}

// exists compares: the key is there, and is the one that this record has created.
func (r *record) exists() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(r.key), "=", r.rev)
}

// enqueue creates the key. If only is true, it does so only if the queue is empty, and otherwise returns
// the last key of the queue. It returns the predecessor, or "" if there is none. It may be made again
// with the same record, because it finds the key that a request without an answer has created.
func (r *record) enqueue(ctx context.Context, only bool) (predecessor string, err error) {
	free := clientv3.Compare(clientv3.CreateRevision(r.key), "=", 0)
	if only {
		free = clientv3.Compare(clientv3.CreateRevision(r.dir), "=", 0).WithPrefix()
	}
	latest := clientv3.OpGet(r.dir,
		append(clientv3.WithLastCreate(), clientv3.WithKeysOnly(), clientv3.WithLimit(2))...)
	create := clientv3.OpPut(r.key, "", clientv3.WithLease(r.s.id))
	var answer *clientv3.TxnResponse
	err = r.s.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = r.s.c.etcd.Txn(ctx).If(free).Then(create, latest).Else(clientv3.OpGet(r.key), latest).Commit()
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			r.s.lose(errRevoked)
		case err != nil && !refused(err):
			r.maybe = true
			r.s.doubt.Store(true)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	r.asOf = answer.Header.Revision
	r.s.know(r.dir)
	if answer.Succeeded {
		r.rev = answer.Header.Revision
		return r.last(ctx, keysOf(answer.Responses[1]))
	}
	if own := keysOf(answer.Responses[0]); len(own) > 0 { // a request before has created it
		r.rev = own[0].CreateRevision
		return r.look(ctx)
	}
	if key, _ := r.pick(keysOf(answer.Responses[1])); key != "" {
		return key, nil
	}
	return r.enqueue(ctx, false) // the directory has other directories
}

func keysOf(answer *etcdserverpb.ResponseOp) []*mvccpb.KeyValue { return answer.GetResponseRange().Kvs }

// last returns the predecessor, if found are the last keys of the directory.
func (r *record) last(ctx context.Context, found []*mvccpb.KeyValue) (predecessor string, err error) {
	key, others := r.pick(found)
	if key != "" || !others {
		return key, nil
	}
	if found, err = r.before(ctx, 0); err != nil {
		return "", err
	}
	key, _ = r.pick(found)
	return key, nil
}

// pick returns the first of the keys in found that is another one of the queue, and whether there are
// keys of other directories.
func (r *record) pick(found []*mvccpb.KeyValue) (key string, others bool) {
	for _, kv := range found {
		switch key := string(kv.Key); {
		case strings.Contains(key[len(r.dir):], "/"):
			others = true
		case key != r.key:
			return key, others
		}
	}
	return "", others
}

// look reads the predecessor of the key. It fails with ErrKeyDeleted if the key does not exist.
func (r *record) look(ctx context.Context) (predecessor string, err error) {
	found, err := r.before(ctx, 1)
	if err != nil {
		return "", err
	}
	return r.last(ctx, found)
}

// before returns the last keys below the directory that were created before this one, the last one
// first. A limit of 0 means all.
func (r *record) before(ctx context.Context, limit int64) ([]*mvccpb.KeyValue, error) {
	read := clientv3.OpGet(r.dir, append(clientv3.WithLastCreate(), clientv3.WithKeysOnly(),
		clientv3.WithMaxCreateRev(r.rev-1), clientv3.WithLimit(limit))...)
	var answer *clientv3.TxnResponse
	err := r.s.ask(ctx, func(ctx context.Context) (err error) {
		kept := clientv3.Compare(clientv3.LeaseValue(r.key), "=", r.s.id) // a put would have changed it
		answer, err = r.s.c.etcd.Txn(ctx).If(r.exists(), kept).Then(read).Commit()
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !answer.Succeeded:
		return nil, ErrKeyDeleted
	}
	r.asOf = answer.Header.Revision
	return keysOf(answer.Responses[0]), nil
}

// await waits until a key may have been deleted after the revision of the last read. It returns early
// when ctx ends or the session is lost, and after perLook. The caller looks again.
func (r *record) await(ctx context.Context, key string) {
	ctx, cancel := both(ctx, r.ctx)
	defer cancel()
	watch, stop := context.WithTimeout(clientv3.WithRequireLeader(ctx), r.s.perLook())
	defer stop()
	for answer := range r.s.c.etcd.Watch(watch, key, clientv3.WithRev(r.asOf+1), clientv3.WithFilterPut()) {
		if len(answer.Events) > 0 {
			return
		}
	}
	if watch.Err() == nil { // it has failed
		pause(ctx, r.s.rest())
	}
}

// watchLate is how long a hold lasts before its key is watched. Most holds end before.
const watchLate = 100 * time.Millisecond

// watch ends the hold when its key does not exist any more.
func (r *record) watch() {
	late := time.NewTimer(watchLate)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.ctx.Done():
	}
	for r.ctx.Err() == nil {
		r.await(r.ctx, r.key)
		switch _, err := r.look(r.ctx); {
		case errors.Is(err, ErrKeyDeleted):
			r.lose(err)
		case err != nil:
			pause(r.ctx, r.s.perRequest())
		}
	}
}

// toHold returns the hold of a record that is the first of its queue.
func (r *record) toHold(name string) (*recipes.Hold, error) {
	c := r.s.c
	h, err := recipes.HoldForeign(recipes.ForeignHold{
		Name: name, Token: r.rev, Until: func() time.Time { return *r.s.until.Load() },
		Lost: r.ctx.Done(), Reason: func() error { return context.Cause(r.ctx) },
		Release: r.release, Within: r.s.perRelease(),
		Go: c.start, Closed: c.ended, Logger: c.conf.log, Metrics: c.conf.metrics,
	})
	if err != nil {
		return nil, err
	}
	c.add(h, r)
	c.start(r.watch)
	return h, nil
}

// release deletes the key. If that is not confirmed when ctx ends, it goes on in the background.
func (r *record) release(ctx context.Context) error {
	r.lose(nil)
	r.s.c.remove(r)
	err := r.delete(ctx)
	if err != nil && !errors.Is(err, recipes.ErrForeignLost) {
		r.leave()
	}
	return err
}

// leave deletes the key in the background, if it may be there. When the client is closed, its lease is
// revoked instead.
func (r *record) leave() {
	r.lose(nil)
	if r.rev == 0 && !r.maybe {
		r.s.forget(r.key)
		return
	}
	r.s.c.start(func() { _ = r.delete(r.s.c.ctx) })
}

// delete deletes the key, if it is the one that this record has created. It returns nil when it has
// deleted the key, or the lease has ended, and recipes.ErrForeignLost if the key was deleted before. It
// returns another error after ctx has ended.
func (r *record) delete(ctx context.Context) error {
	ctx, cancel := both(ctx, r.s.kept)
	defer cancel()
	var mine []clientv3.Cmp
	if r.rev > 0 { // otherwise the key was not seen, but may be there
		mine = append(mine, r.exists())
	}
	for repeated := false; ; repeated = true {
		var answer *clientv3.TxnResponse
		err := r.s.within(ctx, func(ctx context.Context) (err error) {
			answer, err = r.s.c.etcd.Txn(ctx).If(mine...).Then(clientv3.OpDelete(r.key)).Commit()
			return err
		})
		switch {
		case err == nil && !answer.Succeeded && !repeated: // otherwise a request before may have deleted it
			r.s.forget(r.key)
			return fmt.Errorf("%w: %w", recipes.ErrForeignLost, ErrKeyDeleted)
		case err == nil:
			r.s.forget(r.key)
			return nil
		case r.s.kept.Err() != nil:
			return nil
		case ctx.Err() != nil:
			return err
		case !transient(err):
			r.s.c.conf.log.Named("etcdlock").Warn("a key could not be deleted: it stays until the lease ends",
				zap.String("key", r.key), zap.Error(err))
			pause(ctx, r.s.perLook())
		}
		pause(ctx, r.s.rest())
	}
}
