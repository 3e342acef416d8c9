package acceptance_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
)

const (
	p06Flaps   = 200
	p06Watched = 50 // nodes, each of which changes once per interruption: 10,000 events
)

// The connection breaks 200 times and 10,000 watch events arrive in between, while one listener
// sleeps for an hour in its first call. No change of state is lost or reordered, neither for that
// listener nor for another one, and no watch is missed.
func TestP06_BurstLosesAndReordersNothing(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		prompt, asleep := &p06Listener{}, &p06Listener{nap: time.Hour}
		c := bubbleSetUp(t, srv, "c", func(c *framework.Client) {
			c.Listen(asleep.hear)
			c.Listen(prompt.hear)
		})
		require.NoError(t, c.WaitConnected(t.Context()))
		began := time.Now()
		for i := range p06Watched {
			require.NoError(t, srv.Create(p06Path(i), nil))
		}
		want := []framework.State{framework.Connected}
		for range p06Flaps {
			p06Flap(t, srv, c)
			want = append(want, framework.Suspended, framework.Reconnected)
		}
		synctest.Wait()
		require.Equal(t, want, prompt.states())
		require.Less(t, time.Since(began), time.Hour)
		require.Empty(t, asleep.states(), "it did not sleep long enough, so nothing was tested")
		time.Sleep(time.Hour)
		require.Equal(t, want, asleep.states())
		require.Equal(t, prompt.changes, asleep.changes, "including sessions and causes")
	})
}

func p06Path(i int) string { return fmt.Sprintf("/n%d", i) }

// p06Flap watches all nodes, changes all of them at once, and breaks the connection meanwhile.
func p06Flap(t testing.TB, srv *zktest.Server, c *framework.Client) {
	t.Helper()
	var watches []*framework.Watch
	for i := range p06Watched {
		_, _, w, err := c.GetW(t.Context(), p06Path(i))
		require.NoError(t, err)
		watches = append(watches, w)
	}
	for i := range p06Watched {
		if i == p06Watched/2 {
			srv.Client("c").Reset()
		}
		require.NoError(t, srv.Set(p06Path(i), nil))
	}
	for _, w := range watches {
		<-w.Fired()
	}
	require.NoError(t, c.WaitConnected(t.Context()))
}

// p06Listener may sleep in its first call.
type p06Listener struct {
	nap time.Duration

	mu      sync.Mutex
	changes []framework.StateChange
}

func (l *p06Listener) hear(change framework.StateChange) {
	time.Sleep(l.nap)
	l.nap = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, change)
}

func (l *p06Listener) states() (states []framework.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range l.changes {
		states = append(states, change.State)
	}
	return states
}
