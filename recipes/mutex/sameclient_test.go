package mutex_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
)

// At the end of a session the servers report the deletion of each of its nodes before they close the
// connection. The client does not know yet that its hold has ended.
func TestWaiterIsNotGrantedBesideAHoldOfTheSameSession(t *testing.T) {
	testlock.Virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := testlock.Named(t, srv, "a")
		one, two := newMutex(t, c, "/lock"), newMutex(t, c, "/lock")
		held := testlock.Start(t, one.Acquire).Won(t)
		second := testlock.Start(t, two.Acquire)
		testlock.Settle()
		testlock.Expire(t, srv, "a")
		next := second.Won(t)
		require.Error(t, held.Err(), "two holds of one client are valid")
		require.NoError(t, next.Err())
		require.Greater(t, next.Token(), held.Token())
	})
}

// The event of the deletion arrives, and no answer does. The predecessor has waited itself, or not.
func TestWaiterOfTheSameClientAsksAfterADeletionThatTheClientDidNotAskFor(t *testing.T) {
	for name, waited := range map[string]bool{"the holder has waited": true, "it has not": false} {
		t.Run(name, func(t *testing.T) {
			testlock.Virtually(t, func(t *testing.T, srv *zktest.Server) {
				c, other := testlock.Named(t, srv, "a"), testlock.Named(t, srv, "b")
				ahead := testlock.Start(t, newMutex(t, other, "/lock").Acquire).Won(t)
				if !waited {
					require.NoError(t, ahead.Release())
				}
				first := testlock.Start(t, newMutex(t, c, "/lock").Acquire)
				testlock.Settle()
				if waited {
					require.NoError(t, ahead.Release())
				}
				held := first.Won(t)
				second := testlock.Start(t, newMutex(t, c, "/lock").Acquire)
				testlock.Settle()
				srv.Client("a").CutRequests()
				require.NoError(t, srv.Delete(held.Path()))
				testlock.Settle()
				require.NoError(t, held.Err(), "the client cannot know")
				require.True(t, second.Waiting(), "two holds of one client are valid")
				srv.Client("a").Heal()
				next := second.Won(t)
				<-held.Done()
				require.NoError(t, next.Release())
			})
		})
	}
}
