package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/framework"
)

// Redlock makes locks that are each a key on several servers of Redis: those of the algorithm of this
// name. The servers must be independent masters, without replicas that take their place. A lock is
// acquired when more than a half of the servers have set its key, and the answers came before it is too
// late. So it outlasts the loss of less than a half of the servers, which a lock on one server does not.
//
// It cannot promise that at most one hold is valid at a time. That depends on time:
//
//   - The clock of each server must not be set forward. Servers whose clocks are expire the key early. If
//     they and the servers that the holder did not reach are a majority, two clients hold the lock. A
//     tenth of the time to live covers clocks that run at other rates.
//   - A server that has lost its keys in a restart must stay away for the time to live of the locks.
//     Nothing here makes it wait. A server that returns at once, without its keys, may give the same lock
//     to another client. Then it and the servers that the first client did not reach are a majority. A
//     server that writes each command to its disk before it answers (appendfsync always) loses none.
//   - A holder that is paused writes late. Each lock has this problem, and a fencing token stops such a
//     write. Redlock has no token: the counters of several servers have no common order. So Token of
//     its holds is 0, and a resource cannot tell an old holder from a new one.
//
// People dispute whether that is enough. Martin Kleppmann ("How to do distributed locking", 2016) says:
// the algorithm is only safe if pauses, delays and errors of clocks are bounded, and it has no fencing
// token. So it is too much for a lock that only saves work, and too little for one on which correctness
// depends. Salvatore Sanfilippo, its author ("Is Redlock safe?", 2016), answers: the time that the acquire
// took is subtracted, so delays before its end do no harm. Pauses after it harm each lock that expires.
// Clocks can be run so that they do not jump. Both say that it is not safe with clocks that jump. Where
// two holders would do harm, use a service that agrees by a majority and has tokens, such as ZooKeeper
// (package mutex) or etcd. Where they would not, a lock on one server is simpler.
//
// A Redlock owns the goroutines of its locks and holds. It is safe for concurrent use. The zero value is
// not usable.
type Redlock struct {
	c       *Client
	servers []Redis
}

// NewRedlock returns a Redlock on servers, each of which must be another one: three at least, and better
// an odd number, because a fourth one allows no more failures than three do. It makes no request. It
// returns an error for nil, for too few servers, for the same client twice, for a client of several
// servers (redis.Ring, redis.ClusterClient), and for options that are not valid. Give each client the
// option ContextTimeoutEnabled. Close the Redlock before the clients.
func NewRedlock(servers []redis.UniversalClient, opts ...Option) (*Redlock, error) {
	var all []Redis
	for i, rdb := range servers {
		if _, cluster := rdb.(*redis.ClusterClient); cluster {
			return nil, errors.New("redislock: a server of a Redlock is a cluster")
		}
		r, err := ofGoRedis(rdb)
		if err != nil {
			return nil, fmt.Errorf("server %d: %w", i, err)
		}
		all = append(all, r)
	}
	return NewRedlockOf(all, opts...)
}

var errTwice = errors.New("redislock: two servers of a Redlock have the same client")

// NewRedlockOf is NewRedlock for other clients of Redis than go-redis. They are never asked to subscribe.
func NewRedlockOf(servers []Redis, opts ...Option) (*Redlock, error) {
	if len(servers) < 3 {
		return nil, fmt.Errorf("redislock: a Redlock needs three servers at least, and not %d", len(servers))
	}
	for i, r := range servers {
		switch {
		case r == nil:
			return nil, errNilRedis
		case reflect.ValueOf(r).Comparable() && slices.Contains(servers[:i], r):
			return nil, errTwice
		}
	}
	c, err := newClient(nil, opts)
	if err != nil {
		return nil, err
	}
	return &Redlock{c, slices.Clone(servers)}, nil
}

// New returns the lock of a name. It makes no request. It fails like the function New. Waiters poll
// (WithPollInterval), with random pauses, and there is no order. Of clients that try at the same time
// each may get too few servers, and then TryAcquire fails for all of them. The lock re-enters. A server
// that was restarted without its keys counts again for later holds.
func (r *Redlock) New(name string) (*Lock, error) {
	if r.c == nil {
		return nil, fmt.Errorf("redislock: %w", framework.ErrZeroValue)
	}
	l, keys, err := newLock(r.c, name)
	if err != nil {
		return nil, err
	}
	l.kind = &majority{r, keys}
	return l, nil
}

// Close is Close of a Client.
func (r *Redlock) Close() error {
	if r.c == nil {
		return framework.ErrZeroValue
	}
	return r.c.Close()
}

// majority is the kind of lock of a Redlock.
type majority struct {
	*Redlock
	keys []string
}

// within is how long a server may take to answer: much less than the time to live.
func (m *majority) within() time.Duration { return m.c.cfg.ttl / 10 }

// vote is the answer of one server.
type vote struct {
	owner string // of the key, before
	err   error
}

// ask has all servers run a script at once, and returns their answers as they come. After that it calls
// then for each server, in the background. The end of ctx does not stop it.
func (m *majority) ask(ctx context.Context, s *script, owner string, then func(Redis)) <-chan vote {
	votes := make(chan vote, len(m.servers))
	for _, server := range m.servers {
		m.c.asking.Go(func() {
			answer, err := m.run(ctx, server, s, owner)
			votes <- vote{fmt.Sprint(answer), err}
			then(server)
		})
	}
	return votes
}

func (m *majority) run(ctx context.Context, server Redis, s *script, owner string) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.within())
	defer cancel()
	return s.run(ctx, server, m.keys, owner, m.c.ttl(), "", int64(0))
}

// judge reports whether a vote is for an owner. An error means that it does not count.
type judge func(owner string) (bool, error)

// ownerIs accepts the votes that name an owner.
func ownerIs(owner string) judge {
	return func(got string) (bool, error) { return got == owner, nil }
}

// tally is the count of the votes of some servers.
type tally struct {
	servers, yes, no int
	errs             []error // of votes that do not count
}

func (t *tally) majority() int { return t.servers/2 + 1 }

// won reports whether a majority is for the owner.
func (t *tally) won() bool { return t.yes >= t.majority() }

// lost reports whether so many are against the owner that the others are no majority.
func (t *tally) lost() bool { return t.no > t.servers-t.majority() }

func (t *tally) missing() int { return t.servers - t.yes - t.no - len(t.errs) }

// undecided reports whether the votes that are missing can still decide.
func (t *tally) undecided() bool {
	all := t.missing()
	most := tally{servers: t.servers, yes: t.yes + all, no: t.no + all}
	return !t.won() && !t.lost() && (most.won() || most.lost())
}

// err returns why the votes have not decided. An error that may pass hides the others: a later try may
// succeed.
func (t *tally) err() error {
	slices.SortStableFunc(t.errs, func(a, b error) int { return passesFirst(a) - passesFirst(b) })
	return fmt.Errorf("%d of %d servers have not voted: %w", len(t.errs), t.servers, t.errs[0])
}

// count counts votes until those for the owner are a majority, or cannot become one any more. other is an
// owner that a server has named in place of it.
func (m *majority) count(votes <-chan vote, accept judge) (won bool, other string, err error) {
	timer := time.NewTimer(m.within())
	defer timer.Stop()
	t := &tally{servers: len(m.servers)}
	for t.undecided() {
		select {
		case v := <-votes:
			accepted, err := false, v.err
			if err == nil {
				accepted, err = accept(v.owner)
			}
			switch {
			case err != nil:
				t.errs = append(t.errs, err)
			case accepted:
				t.yes++
			default:
				t.no, other = t.no+1, v.owner
			}
		case <-timer.C:
			t.errs = append(t.errs, slices.Repeat([]error{context.DeadlineExceeded}, t.missing())...)
		}
	}
	switch {
	case t.won():
		return true, "", nil
	case t.lost():
		return false, other, nil
	}
	return false, other, t.err()
}

func passesFirst(err error) int {
	if isAnswer(err) {
		return 1
	}
	return 0
}

var errEarlierTry = errors.New("the server still has the key of an earlier try")

// acquire uses another value for each try, so that what a try did late does not belong to the next one.
// A try that fails unlocks each server after its answer. Until then the key of that try is no answer to
// the next one: no other client has the lock.
func (m *majority) acquire(ctx context.Context, owner string, _ bool) (grant, error) {
	tries := owner + "/"
	owner = tries + rand.Text()[:8]
	won, decided := false, make(chan struct{})
	votes := m.ask(ctx, takeScript, owner, func(server Redis) {
		if <-decided; !won {
			_, _ = m.run(ctx, server, dropScript, owner) // if this fails the key expires
		}
	})
	defer close(decided)
	var err error
	won, _, err = m.count(votes, func(before string) (bool, error) {
		switch {
		case before == "" || before == owner:
			return true, nil
		case strings.HasPrefix(before, tries):
			return false, errEarlierTry
		}
		return false, nil
	})
	if !won {
		return grant{left: -1}, err
	}
	return grant{granted: true, owner: owner}, nil
}

// renew does not set the key again on a server that has lost it: that could come after the release.
func (m *majority) renew(ctx context.Context, owner string) (string, error) {
	votes := m.ask(ctx, renewScript, owner, func(Redis) {})
	won, other, err := m.count(votes, ownerIs(owner))
	if won {
		return owner, nil
	}
	return other, err
}

func (m *majority) release(ctx context.Context, owner string) (bool, error) {
	votes := m.ask(ctx, dropScript, owner, func(Redis) {})
	ours, _, err := m.count(votes, ownerIs("1"))
	return ours, err
}
