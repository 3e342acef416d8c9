package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// The servers do not answer while a worker waits for the lock, until the client gives up.
func TestWorkerThatWaitsSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("w").DialContext))
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		require.NoError(t, client.WaitConnected(t.Context()))
		lock, err := mutex.New(client, "/lock")
		require.NoError(t, err)
		srv.Client("w").Cut()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var stderr strings.Builder
		w := &worker{job{Worker: 3, Increments: 1}, lock, newRemoteStore("")}
		require.ErrorIs(t, w.takeTurns(ctx, &stderr), context.DeadlineExceeded)
		require.Greater(t, strings.Count(stderr.String(), "worker 3 did not get the lock and tries again: "), 1)
	})
}
