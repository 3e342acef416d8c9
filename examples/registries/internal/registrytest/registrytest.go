// Package registrytest is what the tests of the adapters share.
package registrytest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
)

// patience is how long tests wait for what has to come. It only matters when a test fails.
const patience = time.Minute

// Context returns a context that ends when the test has waited for too long.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Client returns a client that ends with the test.
func Client(t testing.TB, server *zktest.Server) *framework.Client {
	client, err := framework.New(server.Addr(), framework.WithSessionTimeout(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Expire expires the session of the node at a path, and waits until another session has a node there.
func Expire(t testing.TB, server *zktest.Server, path string) {
	t.Helper()
	before := owner(server, path)
	require.NotNil(t, before, "no session has the node %s", path)
	require.NoError(t, before.Expire())
	require.Eventually(t, func() bool {
		after := owner(server, path)
		return after != nil && after.ID != before.ID
	}, patience, time.Millisecond, "%s is not registered again", path)
}

func owner(server *zktest.Server, path string) *zktest.Session {
	for _, session := range server.Sessions() {
		if slices.Contains(session.Ephemerals, path) {
			return &session
		}
	}
	return nil
}
