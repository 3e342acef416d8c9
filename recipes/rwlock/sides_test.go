package rwlock_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// kazoo: test_read_lock, test_write_lock.
func TestReadersShareAndAWriterExcludes(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		a, b := in.lock(t), in.lock(t)
		first, second := acquire(t, a.Read()), acquire(t, b.Read())
		third, err := b.Read().TryAcquire(testzk.Context(t))
		require.NoError(t, err)
		busy(t, a.Write())
		writer := enter(t, a.Write())
		release(t, first, second)
		in.waits(t, writer)
		release(t, third)
		written := writer.Won(t)
		busy(t, b.Read())
		busy(t, b.Write())
		readers := []*testlock.Attempt{enter(t, b.Read()), enter(t, b.Read())}
		in.waits(t, readers...)
		release(t, written)
		release(t, readers[0].Won(t), readers[1].Won(t))
		empty(t, a)
	})
}

// kazoo: test_rw_lock. The order is w r r w r, and the two adjacent readers share.
func TestFirstComeFirstServedOnBothSides(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		a, b := in.lock(t), in.lock(t)
		written := acquire(t, a.Write())
		r1, r2 := enter(t, b.Read()), enter(t, a.Read())
		w := enter(t, b.Write())
		r3 := enter(t, a.Read())
		in.waits(t, r1, r2, w, r3)
		release(t, written)
		first, second := r1.Won(t), r2.Won(t)
		in.waits(t, w, r3)
		release(t, first)
		in.waits(t, w, r3)
		release(t, second)
		next := w.Won(t)
		in.waits(t, r3)
		release(t, next)
		last := r3.Won(t)
		tokens := []int64{written.Token(), first.Token(), second.Token(), next.Token(), last.Token()}
		require.True(t, slices.IsSorted(tokens), "%v", tokens)
		release(t, last)
	})
}

func TestReaderDoesNotWaitForWritersBehindIt(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		a, b := in.lock(t), in.lock(t)
		w1 := acquire(t, a.Write())
		w2 := enter(t, a.Write())
		reader := enter(t, b.Read())
		w3 := enter(t, b.Write())
		release(t, w1)
		second := w2.Won(t)
		in.waits(t, reader, w3)
		release(t, second)
		reading := reader.Won(t)
		in.waits(t, w3)
		release(t, reading)
		release(t, w3.Won(t))
	})
}

func TestReadersAreGrantedWhenTheWriterAheadGivesUp(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		a, b := in.lock(t), in.lock(t)
		reading := acquire(t, a.Read())
		w1, w2 := enter(t, a.Write()), enter(t, b.Write())
		r1, r2 := enter(t, b.Read()), enter(t, a.Read())
		w2.GivesUp(t) // the predecessor
		in.waits(t, w1, r1, r2)
		w1.GivesUp(t)
		release(t, r1.Won(t), r2.Won(t), reading)
		empty(t, a)
	})
}

// Readers acquire and release all the time. A writer gets the lock when the readers ahead of it
// have released.
func TestWriterWaitsForTheReadersAheadOnly(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		a, b := in.lock(t), in.lock(t)
		ahead := []*recipes.Hold{acquire(t, a.Read()), acquire(t, b.Read())}
		writer := enter(t, a.Write())
		var late []*testlock.Attempt
		for range 5 {
			late = append(late, enter(t, b.Read()))
		}
		in.waits(t, late...)
		release(t, ahead...)
		written := writer.Won(t)
		in.waits(t, late...)
		release(t, written)
		for _, r := range late {
			release(t, r.Won(t))
		}
	})
}

// Curator: testGetParticipantNodes.
func TestParticipantsAreThoseOfTheSide(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		const readers, writers = 20, 8
		rw := in.lock(t)
		var holds []*recipes.Hold
		for range readers {
			holds = append(holds, acquire(t, rw.Read()))
		}
		for range writers {
			enter(t, rw.Write())
		}
		for i, p := range queued(t, rw.Read(), readers) {
			require.Equal(t, holds[i].Path(), p.Node)
			require.Equal(t, holds[i].Token(), p.Token)
		}
		for _, p := range queued(t, rw.Write(), writers) {
			require.Contains(t, p.Node, "__WRIT__")
		}
	})
}

func TestParticipantsOfAnEmptyQueue(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) { empty(t, in.lock(t)) })
}

func TestWaiterWithADeletedNodeQueuesAgainAtTheEnd(t *testing.T) {
	sides := map[string]func(*rwlock.RWLock) *rwlock.Side{
		"reader": (*rwlock.RWLock).Read, "writer": (*rwlock.RWLock).Write,
	}
	for name, side := range sides {
		t.Run(name, func(t *testing.T) {
			anywhere(t, func(t *testing.T, in env) {
				rw, c := in.lock(t), in.client(t)
				written := acquire(t, rw.Write())
				target := enter(t, side(newLock(t, c, in.path)))
				testzk.Everywhere(t)
				node := slices.MaxFunc(append(participants(t, rw.Read()), participants(t, rw.Write())...), byToken).Node
				next := enter(t, rw.Write())
				require.NoError(t, c.Delete(testzk.Context(t), node, -1))
				testzk.Eventually(t, func() bool {
					all := append(participants(t, rw.Read()), participants(t, rw.Write())...)
					isDeleted := func(p recipes.Participant) bool { return p.Node == node }
					return len(all) == 3 && !slices.ContainsFunc(all, isDeleted)
				}, "the waiter does not notice that its node was deleted")
				release(t, written)
				between := next.Won(t)
				in.waits(t, target)
				release(t, between)
				release(t, target.Won(t))
			})
		})
	}
}

func byToken(a, b recipes.Participant) int { return int(a.Token - b.Token) }

// The servers may keep a session after its client has given it up.
func TestWaiterIsNotGrantedOnANodeOfItsFormerSession(t *testing.T) {
	sides := map[string]func(*rwlock.RWLock) *rwlock.Side{
		"reader": (*rwlock.RWLock).Read, "writer": (*rwlock.RWLock).Write,
	}
	for name, side := range sides {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				in := on(srv)
				rw := in.lock(t)
				written := acquire(t, rw.Write())
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("target").DialContext))
				former, err := c.Session(testzk.Context(t))
				require.NoError(t, err)
				target := enter(t, side(newLock(t, c, in.path)))
				stale := slices.MaxFunc(append(participants(t, rw.Read()), participants(t, rw.Write())...), byToken)
				srv.Client("target").CutReplies() // the server gets the requests and keeps the session
				<-former.Done()
				require.True(t, srv.Exists(stale.Node))
				release(t, written)
				srv.Client("target").Heal()
				hold := target.Won(t)
				require.NotEqual(t, stale.Node, hold.Path())
				require.Greater(t, hold.Token(), stale.Token)
				release(t, hold)
			})
		})
	}
}
