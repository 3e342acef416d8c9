package guide

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/zktest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// connected returns the context of the test, and a client of a server of its own.
func connected(t *testing.T) (context.Context, *framework.Client) {
	t.Helper()
	srv := zktest.Start(t)
	client, err := framework.New(srv.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return t.Context(), client
}
