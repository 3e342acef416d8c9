package porting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// lockOutages are those in which no lock is held. Only a server that is silent for so short a time that
// the client has not noticed gives no ErrNotConnected.
var lockOutages = map[string]struct {
	begin     func(*zktest.Server)
	end       func(*zktest.Server)
	since     time.Duration
	connected bool // for the client
}{
	"stopped":          {(*zktest.Server).Stop, func(*zktest.Server) {}, 0, false},
	"stopped for long": {(*zktest.Server).Stop, func(*zktest.Server) {}, time.Minute, false},
	"silent":           {(*zktest.Server).Pause, resume, 0, true},
	"silent for long":  {(*zktest.Server).Pause, resume, time.Minute, false},
}

func resume(srv *zktest.Server) { srv.Resume(zktest.ExpireFirst) }

const wait = 200 * time.Millisecond

// In an outage no error matches ErrNotAcquired: no client has the lock.
func TestAWaitForALockInAnOutage(t *testing.T) {
	for name, outage := range lockOutages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
				require.NoError(t, err)
				defer client.Close()
				require.NoError(t, client.WaitConnected(t.Context()))
				mu, err := mutex.New(client, "/locks/orders")
				require.NoError(t, err)
				outage.begin(srv)
				defer outage.end(srv)
				time.Sleep(outage.since)

				_, within := recipes.AcquireWithin(t.Context(), mu, wait)
				do := recipes.DoWithin(t.Context(), mu, wait, func(context.Context, *recipes.Hold) error { return nil })
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				_, acquire := mu.Acquire(ctx)
				for _, err := range []error{within, do, acquire, impatient(t.Context(), mu)} {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.NotErrorIs(t, err, recipes.ErrNotAcquired)
					requireConnected(t, outage.connected, err)
				}
			})
		})
	}
}

func requireConnected(t *testing.T, connected bool, err error) {
	t.Helper()
	if connected {
		require.NotErrorIs(t, err, framework.ErrNotConnected)
		return
	}
	require.ErrorIs(t, err, framework.ErrNotConnected)
}

// A wait that is cancelled behind a holder matches ErrNotAcquired, too.
func TestACancelledWaitBehindAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		require.NoError(t, err)
		defer client.Close()
		mu, err := mutex.New(client, "/locks/orders")
		require.NoError(t, err)
		hold, err := mu.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(wait/2, cancel)
		_, err = mu.AcquireWithin(ctx, wait)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, hold.Release())
	})
}

// A time limit for the registration ends the wait. It does not end what was registered.
func TestRegisterGivesUpInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		require.NoError(t, err)
		defer client.Close()
		node, err := register(t.Context(), client, "10.0.0.3:8080")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, node.Err())
		require.NoError(t, node.Close())
		srv.Stop()
		node, err = register(t.Context(), client, "10.0.0.3:8080")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Nil(t, node)
	})
}
