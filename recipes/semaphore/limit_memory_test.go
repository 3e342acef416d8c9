package semaphore_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// A node without a limit may get one later. Then clients with another limit must find out.
func TestDisagreementIsFoundAlthoughTheNodeHadNoLimitBefore(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	_, err := c.Create(testzk.Context(t), path, []byte("something else"), framework.Parents())
	require.NoError(t, err)
	one := another(t, path, 5)
	release(t, acquire(t, one, 1))
	_, err = c.Set(testzk.Context(t), path, nil, -1)
	require.NoError(t, err)
	two := another(t, path, 1)
	hold := acquire(t, two, 1)
	testzk.Everywhere(t)
	_, err = one.TryAcquireN(testzk.Context(t), 1)
	require.ErrorIs(t, err, semaphore.ErrLimit)
	release(t, hold)
}

// A limit that can no longer be read does not count, as for a new client.
func TestLimitThatBecomesUnreadableIsIgnored(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 2)
	hold := acquire(t, s, 1)
	testzk.Permit(t, path, zk.PermAll&^zk.PermRead)
	release(t, acquire(t, another(t, path, 2), 1))
	testzk.Everywhere(t)
	for range 3 {
		h, err := s.TryAcquire(testzk.Context(t))
		require.NoError(t, err)
		release(t, h)
	}
	release(t, hold)
}
