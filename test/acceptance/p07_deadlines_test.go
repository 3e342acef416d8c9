package acceptance_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p07Limit = 500 * time.Millisecond // of the calls' contexts
	p07Late  = 100 * time.Millisecond // after the limit is too late
)

// p07Connect returns a client on which nothing has happened yet.
func p07Connect(t *testing.T, srv *zktest.Server, opts ...framework.Option) *p07Subject {
	c, err := framework.New(srv.MemAddr(), append(opts, framework.WithDialer(srv.Client("c").DialContext))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		start := time.Now()
		require.NoError(t, c.Close()) // the bubble cannot end while the client has a goroutine
		require.LessOrEqual(t, time.Since(start), 3500*time.Millisecond,
			"Close may take one connect timeout to end the session")
	})
	return p07On(t, c)
}

func p07On(t *testing.T, c *framework.Client) *p07Subject {
	lock, err := mutex.New(c, p07Lock)
	require.NoError(t, err)
	held, err := mutex.New(c, p07Held)
	require.NoError(t, err)
	return &p07Subject{client: c, mutex: lock, held: held}
}

// p07Hold acquires one of the locks with the client.
func p07Hold(t *testing.T, on *p07Subject) {
	var err error
	on.session, err = on.client.Session(t.Context())
	require.NoError(t, err)
	on.hold, err = on.held.Acquire(t.Context())
	require.NoError(t, err)
}

// Every call under a context of 500 ms fails with the context's error after 500 to 600 ms, while
// the servers accept connections and send nothing. This is so whether the client never had a
// connection, has one, lost one or lost its session. Close then leaves no goroutine behind.
func TestP07_CallsEndWithTheirContext(t *testing.T) { // not parallel: it would starve the tests in real time
	onlyInProcess(t, "the exact times take a virtual clock")
	for state, row := range map[string]struct {
		silence func(t *testing.T, on *p07Subject, way *zktest.Client)
		calls   map[string]p07Call
	}{
		"never connected": {
			func(_ *testing.T, _ *p07Subject, way *zktest.Client) { way.Blackhole(true) },
			p07Calls(p07NeedSession()...),
		},
		"connected": {
			func(t *testing.T, on *p07Subject, way *zktest.Client) {
				p07Hold(t, on)
				way.Blackhole(true)
			},
			p07Calls("Client.Session", "Client.Outlast", "Client.WaitConnected"), // return at once
		},
		"suspended": {
			func(t *testing.T, on *p07Subject, way *zktest.Client) {
				p07Hold(t, on)
				way.Refuse(true)
				way.Drop()
				p07Await(on.client, framework.Suspended)
				way.Blackhole(true)
				way.Refuse(false)
			},
			p07Calls("Client.Session"), // returns the suspended session at once
		},
		"lost": {
			func(t *testing.T, on *p07Subject, way *zktest.Client) {
				p07Hold(t, on)
				way.Blackhole(true)
				p07Await(on.client, framework.Lost)
			},
			p07Calls(p07NeedSession()...),
		},
	} {
		for name, call := range row.calls {
			t.Run(state+"/"+name, func(t *testing.T) {
				sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
					require.NoError(t, srv.Create("/old", nil))
					on := p07Connect(t, srv)
					row.silence(t, on, srv.Client("c"))
					took, err := p07Timed(t, on, call)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.GreaterOrEqual(t, took, p07Limit)
					require.LessOrEqual(t, took, p07Limit+p07Late)
				})
			})
		}
	}
}

func p07Await(c *framework.Client, state framework.State) {
	for c.State() != state {
		time.Sleep(time.Millisecond)
	}
}

func p07Timed(t *testing.T, on *p07Subject, call p07Call) (time.Duration, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), p07Limit)
	defer cancel()
	err := call(ctx, on)
	return time.Since(start), err
}

// When the network falls silent while a client is connected, all its calls end at once with their
// contexts, of 500 ms each. How much later depends on the machine.
func TestP07_CallsEndWithTheirContextBehindASilentNetwork(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	on := p07On(t, testzk.Connected(t, p.Addr()+testzk.Path(t),
		framework.WithSessionTimeout(time.Minute), framework.WithConnectTimeout(time.Second)))
	require.NoError(t, on.client.CreateContainers(t.Context(), "/"))
	p07Hold(t, on)
	p.Blackhole(true)
	type result struct {
		name string
		took time.Duration
		err  error
	}
	calls := p07Calls("Client.Session", "Client.Outlast", "Client.WaitConnected")
	results := make(chan result, len(calls))
	for name, call := range calls {
		go func() {
			took, err := p07Timed(t, on, call)
			results <- result{name, took, err}
		}()
	}
	for range calls {
		r := <-results
		require.ErrorIs(t, r.err, context.DeadlineExceeded, r.name)
		require.GreaterOrEqual(t, r.took, p07Limit, r.name)
		require.Less(t, r.took, 60*p07Limit, r.name)
	}
	p.Blackhole(false)
}
