package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// session is a lease and what depends on it. It is renewed until it is lost, and never revives.
type session struct {
	c       *Client
	granted chan struct{} // closed when the lease is granted, or refused
	id      clientv3.LeaseID
	ttl     time.Duration

	ctx  context.Context // ends when the lease is lost; the cause tells why
	lose context.CancelCauseFunc
	kept context.Context // ends when the servers certainly have no key of the lease
	free context.CancelFunc

	until   atomic.Pointer[time.Time] // the deadline
	failure atomic.Pointer[error]     // of the last renewal that failed
	dir     atomic.Pointer[string]    // a directory that the client may read; nil: the lease has no key yet
	known   chan struct{}             // closed when dir is not nil
	doubt   atomic.Bool               // a request may create a key after the client has given the key up

	mu   sync.Mutex
	last int                 // number of the last key
	keys map[string]struct{} // those that the session may have created, and that are not known to be deleted
}

func newSession(c *Client) *session {
	s := &session{
		c: c, granted: make(chan struct{}), ttl: c.conf.ttl, known: make(chan struct{}), keys: map[string]struct{}{},
	}
	s.ctx, s.lose = context.WithCancelCause(c.ctx)
	s.kept, s.free = context.WithCancel(context.Background())
	return s
}

// err returns why the session is lost.
func (s *session) err() error { return context.Cause(s.ctx) }

// over reports whether the session is lost. It compares clocks.
func (s *session) over() bool {
	if until := s.until.Load(); until != nil && left(*until) <= 0 {
		reason := fmt.Errorf("%w: not renewed in time", ErrLeaseLost)
		if err := s.failure.Load(); err != nil {
			reason = fmt.Errorf("%w: %w", reason, *err)
		}
		s.lose(reason)
	}
	return s.ctx.Err() != nil
}

// left returns the time until a deadline, by the clock that says less: the monotonic one may stop
// while a machine is suspended, and the wall clock may be set.
func left(until time.Time) time.Duration {
	now := time.Now()
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// extend sets the deadline after a request that was sent at a time and has renewed the lease. A tenth
// of the time to live is left for clocks that go at different rates.
func (s *session) extend(sent time.Time) {
	until := sent.Add(s.ttl - s.ttl/10)
	s.until.Store(&until)
}

// run gets the lease and renews it until it is lost. Then it waits until the servers have deleted the
// keys, or deletes them when the client is closed.
func (s *session) run() {
	defer s.free()
	if err := s.open(); err != nil {
		s.lose(err)
		close(s.granted)
		return
	}
	close(s.granted)
	for s.renew() {
	}
	expired := time.NewTimer(s.ttl)
	defer expired.Stop()
	select {
	case <-expired.C:
	case <-s.c.ctx.Done():
		s.revoke()
	}
}

func (s *session) open() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.perRequest())
	defer cancel()
	sent := time.Now()
	lease, err := s.c.etcd.Grant(ctx, int64(s.ttl/time.Second))
	if err != nil {
		return fmt.Errorf("grant a lease: %w", err)
	}
	s.id, s.ttl = lease.ID, time.Duration(lease.TTL)*time.Second
	s.extend(sent)
	return nil
}

// renew waits until it is time to renew the lease, and renews it. It reports false when the session is
// lost.
func (s *session) renew() bool {
	pause(s.ctx, jitter(s.ttl/3))
	s.awaitKey()
	for !s.over() {
		err := s.renewOnce()
		switch {
		case err == nil:
			s.sweep()
			return true
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			s.lose(errRevoked)
		}
		s.failure.Store(&err)
		pause(s.ctx, s.rest())
	}
	return false
}

// awaitKey waits until the lease has a key, or is lost. Without a key nothing verifies a renewal.
func (s *session) awaitKey() {
	deadline := time.NewTimer(left(*s.until.Load()))
	defer deadline.Stop()
	select {
	case <-s.known:
	case <-deadline.C:
	case <-s.ctx.Done():
	}
}

// know notes a directory that the client may read.
func (s *session) know(dir string) {
	if s.dir.Swap(&dir) == nil {
		close(s.known)
	}
}

// renewOnce renews the lease, and moves the deadline. A leader of etcd that the others have replaced
// may renew a lease in its own memory, while the lease expires at the new leader. Releases before 2024
// do so. A read that is linearizable has the term of the true leader. If it is the term of the
// renewal, the true leader has renewed the lease.
func (s *session) renewOnce() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.perRequest())
	defer cancel()
	sent := time.Now()
	term, err := s.keepAlive(ctx)
	if err != nil {
		return err
	}
	read, err := s.c.etcd.Get(ctx, *s.dir.Load(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	if read.Header.RaftTerm != term {
		return errors.New("etcd has changed its leader meanwhile")
	}
	if s.over() { // the lease may have expired before it was renewed
		return s.err()
	}
	s.extend(sent)
	return nil
}

// keepAlive makes one request, unlike the method of the client of etcd, which repeats it without a
// pause. It returns the term of the answer.
func (s *session) keepAlive(ctx context.Context) (term uint64, err error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	stream, err := clientv3.RetryLeaseClient(s.c.etcd).LeaseKeepAlive(ctx)
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(s.id)}); err != nil {
		return 0, err
	}
	answer, err := stream.Recv()
	switch {
	case err != nil:
		return 0, rpctypes.Error(err)
	case answer.TTL <= 0:
		return 0, rpctypes.ErrLeaseNotFound
	}
	return answer.Header.RaftTerm, nil
}

// sweep deletes keys of the lease that the client has given up: a request whose answer was lost may
// have created one later. What is left over, the next sweep deletes.
func (s *session) sweep() {
	if !s.doubt.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.perRequest())
	defer cancel()
	lease, err := s.c.etcd.TimeToLive(ctx, s.id, clientv3.WithAttachedKeys())
	if err != nil {
		return
	}
	for _, key := range lease.Keys {
		if !s.has(string(key)) {
			_, _ = s.c.etcd.Delete(ctx, string(key))
		}
	}
}

// revoke has the servers delete all keys of the lease. Requests that arrive later cannot create any.
func (s *session) revoke() {
	ctx, cancel := context.WithTimeout(context.Background(), s.perRequest())
	defer cancel()
	_, err := s.c.etcd.Revoke(ctx, s.id)
	if err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
		for _, key := range s.remaining() { // only one that was written by another client is there
			_, _ = s.c.etcd.Delete(ctx, key)
		}
		return
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.revoked = errors.Join(s.c.revoked, err)
}

// newKey returns a key below dir that no other acquire uses.
func (s *session) newKey(dir string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	key := fmt.Sprintf("%s%x-%d", dir, s.id, s.last)
	s.keys[key] = struct{}{}
	return key
}

func (s *session) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.keys[key]
	return ok
}

// remaining returns the keys that are not known to be deleted.
func (s *session) remaining() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.keys))
}

func (s *session) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
}

// The times below are fractions of the time to live, and have limits for a long one.

// rest returns how long to wait before something that has failed is tried again.
func (s *session) rest() time.Duration { return jitter(min(s.ttl/20, time.Second)) }

// perRequest is how long a request may take before it is made again, perhaps to another server.
func (s *session) perRequest() time.Duration { return min(s.ttl/3, 10*time.Second) }

// perLook is how long to rely on a watch before its key is read again: its server may be stuck.
func (s *session) perLook() time.Duration { return jitter(min(2*s.ttl, 2*time.Minute)) }

// perRelease is how long a release may wait for its answer.
func (s *session) perRelease() time.Duration { return min(s.ttl, 10*time.Second) }

// ask makes a request, again and again until it is answered, ctx ends or the session is lost.
func (s *session) ask(ctx context.Context, request func(ctx context.Context) error) error {
	ctx, cancel := both(ctx, s.ctx)
	defer cancel()
	for {
		err := s.within(ctx, request)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case s.c.etcd.Ctx().Err() != nil:
			return errClosedBelow
		case !transient(err):
			return err
		}
		pause(ctx, s.rest())
	}
}

// within makes a request once.
func (s *session) within(ctx context.Context, request func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.perRequest())
	defer cancel()
	return request(ctx)
}
