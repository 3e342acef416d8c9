package interop

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/go-zookeeper/zk"
)

// runDocent is the peer of docent.
func runDocent(args []string) {
	fmt.Println("ready")
	actors := map[string]*docentActor{}
	var running sync.WaitGroup
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		a := actors[words[0]]
		if a == nil {
			a = newDocentActor(words[0], args)
			actors[words[0]] = a
			running.Go(a.run)
		}
		a.requests <- words[1:]
	}
	for _, a := range actors {
		close(a.requests)
		a.over()
	}
	running.Wait()
}

// docentActor handles the requests of one actor, one after the other.
type docentActor struct {
	name     string
	servers  string
	timeout  time.Duration
	resource string
	requests chan []string
	ctx      context.Context
	over     context.CancelFunc
	client   *framework.Client
	locks    map[string]contended
	pairs    map[string]*pair // by path
	groups   groups
	caches   caches
	inside   barriers
}

func newDocentActor(name string, args []string) *docentActor {
	ms, err := strconv.Atoi(args[1])
	if err != nil {
		panic(err)
	}
	a := &docentActor{name: name, servers: args[0], timeout: time.Duration(ms) * time.Millisecond, resource: args[2],
		requests: make(chan []string, 16), locks: map[string]contended{}, pairs: map[string]*pair{},
		groups: groups{map[string]*group.Membership{}, map[string]*persistent.Node{}}, caches: caches{},
		inside: barriers{}}
	a.ctx, a.over = context.WithCancel(context.Background())
	return a
}

func (a *docentActor) run() {
	for words := range a.requests {
		answer, err := a.act(words)
		if err != nil {
			answer = fmt.Sprintf("failed %v", err)
		}
		fmt.Println(a.name, strings.ReplaceAll(answer, "\n", " "))
	}
	if a.client != nil {
		_ = a.client.Close()
	}
}

func (a *docentActor) act(words []string) (string, error) {
	if a.client == nil {
		var err error
		a.client, err = framework.New(a.servers, framework.WithSessionTimeout(a.timeout),
			framework.WithRetry(retry.Forever(100*time.Millisecond)))
		if err != nil {
			return "", err
		}
	}
	verb, args := words[0], words[1:]
	switch verb {
	case "make":
		lock, err := a.newLock(args[1], args[2:])
		a.locks[args[0]] = lock
		return "made", err
	case "acquire":
		return a.acquire(a.locks[args[0]], args[1])
	case "release":
		return "released", a.locks[args[0]].release()
	case "participants":
		return a.participants(a.locks[args[0]])
	case "revocable":
		a.locks[args[0]].(*docentLock).asked = func() { fmt.Println(a.name, "! revoked", args[0]) }
		return "revocable", nil
	case "revoke":
		return "asked", a.revoke(args[0])
	case "limit":
		return "set", a.setLimit(args[0], args[1])
	case "work":
		return a.work(a.locks[args[0]], args[1], args[2])
	case "add":
		return add(a.ctx, a.client, args[0], args[1], args[2])
	case "cache", "cached", "uncache":
		return a.caches.act(a.client, verb, args[0])
	case "set-barrier", "remove-barrier", "wait-barrier", "enter", "exit":
		return a.inside.act(a.ctx, a.client, verb, args)
	case "join", "join-party", "payload", "members", "members-party", "leave", "keep", "drop":
		return a.groups.act(a.ctx, a.client, verb, args)
	}
	return "", fmt.Errorf("unknown request %q", verb)
}

// contended is a lock of any kind, for one actor.
type contended interface {
	try(ctx context.Context) error
	acquire(ctx context.Context) error
	release() error
}

func (a *docentActor) acquire(lock contended, within string) (string, error) {
	ms, err := strconv.Atoi(within)
	if err != nil {
		return "", err
	}
	switch {
	case ms < 0:
		err = lock.acquire(a.ctx)
	case ms == 0:
		err = lock.try(a.ctx)
	default:
		ctx, cancel := context.WithTimeout(a.ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
		err = lock.acquire(ctx)
	}
	if errors.Is(err, recipes.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
		return "busy", nil
	}
	return "held", err
}

func (a *docentActor) participants(lock contended) (string, error) {
	all, err := lock.(*docentLock).lister.Participants(a.ctx)
	var nodes []string
	for _, p := range all {
		nodes = append(nodes, p.Node)
	}
	return strings.Join(nodes, " "), err
}

// revoke requests the release of a lock node. As with Curator, the node may be deleted already.
func (a *docentActor) revoke(node string) error {
	err := recipes.Revoke(a.ctx, a.client, recipes.Participant{Node: node})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

func (a *docentActor) setLimit(node, limit string) error {
	n, err := strconv.ParseUint(limit, 10, 32)
	if err != nil {
		return err
	}
	_, err = a.client.Set(a.ctx, node, binary.BigEndian.AppendUint32(nil, uint32(n)), -1)
	return err
}

func (a *docentActor) work(lock contended, resource, role string) (string, error) {
	uses, err := use(a.resource, resource, role, "docent")
	if err != nil {
		return "", err
	}
	defer uses.close()
	for turns := 1; ; turns++ {
		if err := lock.acquire(a.ctx); err != nil {
			return "", err
		}
		enough, err := uses.enter()
		if err := errors.Join(err, uses.leave(), lock.release()); err != nil {
			return "", err
		}
		if enough {
			return fmt.Sprintf("worked %d", turns), nil
		}
	}
}

// acquirer has the methods that all locks of docent have in common.
type acquirer interface {
	Acquire(ctx context.Context) (*recipes.Hold, error)
	TryAcquire(ctx context.Context) (*recipes.Hold, error)
}

// docentLock is one of docent's locks.
type docentLock struct {
	acquirer
	lister interface {
		Participants(ctx context.Context) ([]recipes.Participant, error)
	}
	// Returns the context to acquire with. nil: the given one.
	under func(ctx context.Context) context.Context
	hold  *recipes.Hold
	asked func() // called when a release of the next hold is requested
}

func (l *docentLock) try(ctx context.Context) error     { return l.take(ctx, l.TryAcquire) }
func (l *docentLock) acquire(ctx context.Context) error { return l.take(ctx, l.Acquire) }
func (l *docentLock) release() error                    { return l.hold.Release() }

func (l *docentLock) take(ctx context.Context, how func(context.Context) (*recipes.Hold, error)) error {
	if l.under != nil {
		ctx = l.under(ctx)
	}
	hold, err := how(ctx)
	if err != nil {
		return err
	}
	l.hold = hold
	if asked := l.asked; asked != nil {
		l.asked = nil
		go func() { // ends with the hold
			select {
			case <-hold.Revoked():
				asked()
			case <-hold.Done():
			}
		}()
	}
	return nil
}

// pair is the two sides of a read-write lock, which one actor may hold together.
type pair struct {
	rw          *rwlock.RWLock
	read, write *docentLock
}

func (a *docentActor) pair(path string, opts ...rwlock.Option) (*pair, error) {
	if p := a.pairs[path]; p != nil {
		return p, nil
	}
	rw, err := rwlock.New(a.client, path, opts...)
	if err != nil {
		return nil, err
	}
	p := &pair{rw: rw}
	p.write = &docentLock{acquirer: rw.Write(), lister: rw.Write()}
	p.read = &docentLock{acquirer: rw.Read(), lister: rw.Read(), under: func(ctx context.Context) context.Context {
		if p.write.hold == nil || p.write.hold.Err() != nil {
			return ctx
		}
		return p.write.hold.Context(ctx)
	}}
	a.pairs[path] = p
	return p, nil
}

func (a *docentActor) newLock(kind string, args []string) (contended, error) {
	path := args[0]
	switch kind {
	case "mutex", "kazoo-mutex":
		m, err := mutex.New(a.client, path, map[string][]mutex.Option{"kazoo-mutex": {mutex.WithKazooNames()}}[kind]...)
		return &docentLock{acquirer: m, lister: m}, err
	case "read", "write", "kazoo-read", "kazoo-write":
		return a.side(kind, path)
	case "semaphore-mutex":
		m, err := semaphore.NewMutex(a.client, path)
		return &docentLock{acquirer: m}, err
	case "semaphore":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return nil, err
		}
		s, err := semaphore.New(a.client, path, n)
		return &docentLock{acquirer: s, lister: s}, err
	case "shared-semaphore":
		s, err := semaphore.New(a.client, path, 1, semaphore.WithSharedLimit(args[1]))
		return &docentLock{acquirer: s, lister: s}, err
	case "multi":
		// In order, as Curator acquires them.
		m, err := multilock.New(a.client, strings.Split(path, ","), multilock.WithPathOrder())
		return &docentLock{acquirer: m}, err
	case "latch":
		return &docentLatch{a.client, path, args[1], nil}, nil
	case "selector", "kazoo-selector":
		opts := []leader.Option{leader.WithID(args[1])}
		if kind == "kazoo-selector" {
			opts = append(opts, leader.WithKazooNames())
		}
		e, err := leader.New(a.client, path, opts...)
		return &docentSelector{election: e}, err
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}

func (a *docentActor) side(kind, path string) (contended, error) {
	names, of, isKazoo := strings.Cut(kind, "-")
	if !isKazoo {
		of = names
	}
	p, err := a.pair(path, map[bool][]rwlock.Option{true: {rwlock.WithKazooNames()}}[isKazoo]...)
	if err != nil {
		return nil, err
	}
	return map[string]contended{"read": p.read, "write": p.write}[of], nil
}

// aMoment is the time for which candidates wait that only try.
const aMoment = 100 * time.Millisecond

// docentLatch is a leadership as a lock, with a new candidate for each acquire.
type docentLatch struct {
	client   *framework.Client
	path, id string
	latch    *leader.Latch
}

// try runs a candidate for a moment.
func (l *docentLatch) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	return l.acquire(ctx)
}

func (l *docentLatch) release() error { return l.latch.Close() }

func (l *docentLatch) acquire(ctx context.Context) (err error) {
	if l.latch, err = leader.NewLatch(l.client, l.path, leader.WithID(l.id)); err != nil {
		return err
	}
	if err := l.latch.Start(context.Background()); err != nil {
		return err
	}
	if _, err = l.latch.Await(ctx); err != nil {
		return errors.Join(err, l.latch.Close())
	}
	return nil
}

// docentSelector is a leadership as a lock, with a new candidate for each acquire.
type docentSelector struct {
	election *leader.Election
	stop     context.CancelFunc
	over     chan struct{}
}

// try runs a candidate for a moment.
func (s *docentSelector) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	return s.acquire(ctx)
}

func (s *docentSelector) acquire(ctx context.Context) error {
	var life context.Context
	life, s.stop = context.WithCancel(context.Background())
	begun := make(chan struct{})
	s.over = make(chan struct{})
	go func() { // ended by release
		defer close(s.over)
		_ = s.election.Run(life, func(ctx context.Context, _ *leader.Term) error {
			close(begun)
			<-ctx.Done()
			return nil
		})
	}()
	select {
	case <-begun:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.release())
	}
}

func (s *docentSelector) release() error {
	s.stop()
	<-s.over
	return nil
}
