package locktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/locktest"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// mutexes are the locks of one test: mutexes of several clients on one server.
func mutexes(server *zktest.Server) locktest.Service {
	return locktest.Service{
		Client: func(t testing.TB, name string) locktest.Client {
			client, err := framework.New(server.Addr())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			lock, err := mutex.New(client, "/locks/"+t.Name())
			require.NoError(t, err)
			return locktest.Client{Lock: lock, Close: func() { client.Close() }}
		},
		Lease:  10 * time.Second,
		Tokens: true,
	}
}

// The function is what the test of a lock contains: func TestMutex(t *testing.T).
func Example() {
	_ = func(t *testing.T) {
		locktest.Run(t, mutexes(zktest.Start(t)))
	}
}
