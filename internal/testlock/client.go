package testlock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
)

// Client returns a client of servers in virtual time that depends on the seed only. It repeats
// operations for as long as the session lives, and is closed when the test ends.
func Client(
	t testing.TB, link *zktest.Client, servers string, random *rand.Rand, timeout time.Duration,
	opts ...framework.Option,
) *framework.Client {
	t.Helper()
	client, err := framework.New(servers, append([]framework.Option{
		framework.WithDialer(link.DialContext),
		framework.WithSessionTimeout(timeout),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N),
		framework.WithRetry(retry.Forever(100 * time.Millisecond)),
		framework.WithLogger(Log(t)),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
