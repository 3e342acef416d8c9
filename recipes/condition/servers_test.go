package condition_test

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
)

// These tests run on real servers too.

// Each signal lets the waiter go on that came first. A broadcast lets all others go on, in order.
func TestWaitersGoOnInOrder(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	one := newUser(t, testzk.Connected(t, testzk.Connect()), path)
	handoff := mutex.WithLocalHandoff(mutex.Handoff{Streak: 3, Span: time.Minute})
	users := []*user{one, newUser(t, testzk.Connected(t, testzk.Connect()), path), one,
		newUser(t, testzk.Connected(t, testzk.Connect()), path, handoff)}
	one.signal() // nothing
	var waiting []*testlock.Attempt
	var last int64
	for _, u := range users {
		waiting = append(waiting, u.wait())
	}
	one.signal()
	for i, a := range waiting {
		if i == 1 {
			one.broadcast()
		}
		hold := a.Won(t)
		require.NoError(t, hold.Err())
		require.Greater(t, hold.Token(), last)
		last = hold.Token()
		for _, later := range waiting[i+1:] {
			require.True(t, later.Waiting())
		}
		require.NoError(t, hold.Release())
	}
	testzk.Empty(t, one.cond.Path())
}

// Each waiter has the lock when its time is over. One that was signaled before says so.
func TestWaitersWithLimits(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	a := newUser(t, testzk.Connected(t, testzk.Connect()), path)
	b := newUser(t, testzk.Connected(t, testzk.Connect()), path)
	first := a.waitWithin(time.Millisecond)
	second, entered := a.entersWithin(time.Hour) // perhaps after the first one has left with the lock
	first.ends(t, false)
	testzk.Closes(t, entered, "the second waiter does not release the lock")
	b.signal()
	second.ends(t, true)
	third, last := a.wait(), b.waitWithin(time.Millisecond)
	last.ends(t, false)
	b.signal()
	require.NoError(t, third.Won(t).Release())
	testzk.Empty(t, a.cond.Path())
}

// Java's bounded buffer: producers wait until there is room, consumers until there is something. All
// that is put is taken once.
func TestBoundedBuffer(t *testing.T) {
	t.Parallel()
	const clients, room, each = 3, 2, 8
	path := testzk.Path(t)
	first := testzk.Connected(t, testzk.Connect())
	require.NoError(t, first.CreateContainers(t.Context(), path))
	_, err := first.Create(t.Context(), path+"/count", make([]byte, 4))
	require.NoError(t, err)
	testzk.Everywhere(t)
	var running sync.WaitGroup
	for range clients {
		c := testzk.Connected(t, testzk.Connect())
		for _, step := range []int32{1, -1} {
			b := newBuffer(t, c, path, step, room)
			running.Go(func() {
				for range each {
					b.move()
				}
			})
		}
	}
	running.Wait()
	require.Zero(t, newBuffer(t, first, path, 1, room).count())
	testzk.Empty(t, path+"/not-full")
	testzk.Empty(t, path+"/not-empty")
}

// buffer is a producer or a consumer of a number in a node.
type buffer struct {
	t          *testing.T
	client     *framework.Client
	mutex      *mutex.Mutex
	own, other *condition.Condition // what it waits for, what it signals
	path       string
	step, room int32
}

func newBuffer(t *testing.T, c *framework.Client, path string, step, room int32) *buffer {
	t.Helper()
	mu, err := mutex.New(c, path+"/lock")
	require.NoError(t, err)
	notFull, err := condition.New(mu, path+"/not-full")
	require.NoError(t, err)
	notEmpty, err := condition.New(mu, path+"/not-empty")
	require.NoError(t, err)
	b := &buffer{t, c, mu, notFull, notEmpty, path + "/count", step, room}
	if step < 0 {
		b.own, b.other = notEmpty, notFull
	}
	return b
}

func (b *buffer) count() int32 {
	if err := b.client.Sync(context.Background(), b.path); err != nil {
		b.t.Error(err)
	}
	data, _, err := b.client.Get(context.Background(), b.path)
	if err != nil {
		b.t.Error(err)
		return 0
	}
	return int32(binary.BigEndian.Uint32(data))
}

// move puts or takes one.
func (b *buffer) move() {
	ctx := testzk.Context(b.t)
	hold, err := b.mutex.Acquire(ctx)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer func() { _ = hold.Release() }()
	count := b.count() + b.step
	for ; count < 0 || count > b.room; count = b.count() + b.step {
		if hold, err = b.own.Wait(ctx, hold); err != nil {
			b.t.Error(err)
			return
		}
	}
	_, err = hold.Guard(ctx, framework.SetOp(b.path, binary.BigEndian.AppendUint32(nil, uint32(count)), -1))
	if err == nil {
		err = b.other.Signal(ctx, hold)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// The session of the first waiter is lost after the signal and before it has the lock. The second one
// gets the signal, the third one came later and does not.
func TestWaiterThatIsLostTakesNoSignal(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := testzk.Proxy(t)
	cut := newUser(t, testzk.Connected(t, p.Addr(), testzk.Mortal()), path)
	calm := newUser(t, testzk.Connected(t, testzk.Connect()), path)
	session, err := cut.client.Session(t.Context())
	require.NoError(t, err)
	first, second := cut.wait(), calm.wait()
	hold := calm.acquire()
	p.Blackhole(true)
	require.NoError(t, calm.cond.Signal(testzk.Context(t), hold))
	third := calm.waitWith(hold)
	_, err = first.Wait()
	require.ErrorIs(t, err, framework.ErrSessionLost)
	require.ErrorContains(t, err, "the lock is not held now")
	<-session.Done()
	p.Blackhole(false)
	require.NoError(t, second.Won(t).Release())
	calm.signal()
	require.NoError(t, third.Won(t).Release())
	testzk.Empty(t, calm.cond.Path())
}

// A waiter keeps its position while its server is away.
func TestWaitOutlastsItsServer(t *testing.T) {
	t.Parallel()
	server, path := testzk.Own(t, testzk.Seldom), testzk.Path(t)
	enduring := []framework.Option{ // a busy machine may take long to start the server
		framework.WithSessionTimeout(time.Minute), framework.WithRetry(retry.Forever(100 * time.Millisecond)),
	}
	a := newUser(t, testzk.Connected(t, server.Connect(), enduring...), path)
	b := newUser(t, testzk.Connected(t, server.Connect(), enduring...), path)
	first, second := a.wait(), b.wait()
	server.Kill(t)
	server.Start(t)
	b.signal()
	require.NoError(t, first.Won(t).Release())
	server.Pause(t)
	server.Resume(t)
	a.signal()
	require.NoError(t, second.Won(t).Release())
	testzk.Empty(t, a.cond.Path())
}
