package etcdlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes/locktest"
)

// The tests that each lock of docent passes.
func TestLock(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second
	observer := connect(t, etcd.addr)
	locktest.Run(t, locktest.Service{
		Lease:  ttl + ttl/3, // etcd looks for expired leases twice a second
		Tokens: true,
		// The tests that wait for leases wait at the same time.
		Around: func(t *testing.T, run func(t *testing.T)) { t.Parallel(); run(t) },
		Client: func(t testing.TB, _ string) locktest.Client {
			cable := newCable(t, etcd.addr)
			c := newClient(t, connect(t, cable.addr), etcdlock.WithTTL(ttl))
			return locktest.Client{
				Lock: newLock(t, c, t.Name()),
				Cut:  cable.set,
				Delete: func() {
					all := keys(t, observer, t.Name())
					require.NotEmpty(t, all)
					_, err := observer.Delete(bounded(t), all[0])
					require.NoError(t, err)
				},
				Close: func() { _ = c.Close() }, // it fails when the client is cut off
			}
		},
		Waiters: func(t testing.TB) int { return len(keys(t, observer, t.Name())) - 1 },
	})
}
