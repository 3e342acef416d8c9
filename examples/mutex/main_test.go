package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

func TestExample(t *testing.T) {
	server := testzk.Own(t, testzk.Seldom)
	client, err := framework.New(server.Connect())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	mu, err := mutex.New(client, "/docent-examples/mutex")
	require.NoError(t, err)

	t.Run("holds the lock and releases it", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		require.NoError(t, run(ctx, server.Connect(), &out))
		require.Regexp(t, `^holding /docent-examples/mutex/\S+-lock-\d{10}, token [1-9]\d*\n$`, out.String())
		queue, err := mu.Participants(ctx)
		require.NoError(t, err)
		require.Empty(t, queue)
	})

	t.Run("waits for the holder, and leaves the queue when its context ends", func(t *testing.T) {
		hold, err := mu.Acquire(t.Context())
		require.NoError(t, err)
		ctx, pass := testzk.Deadline(t.Context())
		var out bytes.Buffer
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, server.Connect(), &out) }()
		waits := func() bool { return testzk.Watchers(t, server.Connect(), hold.Path()) == 2 }
		testzk.Eventually(t, waits, "it does not wait")
		pass()
		require.ErrorIs(t, <-ended, recipes.ErrNotAcquired)
		require.Empty(t, out.String())
		require.NoError(t, hold.Release())
	})
}

func TestExampleStartsAServer(t *testing.T) {
	var out, progress bytes.Buffer
	require.NoError(t, runOn(t.Context(), "", &out, &progress))
	require.Regexp(t,
		`^started an in-process ZooKeeper server .*\nasking 127\.0\.0\.1:\d+ for the lock\n$`, progress.String())
	require.Regexp(t, `^holding /docent-examples/mutex/\S+, token [1-9]\d*\n$`, out.String())
}

func TestBadConnectString(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), "localhost:port", &bytes.Buffer{}), "localhost:port")
}
