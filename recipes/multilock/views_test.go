package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
)

// A mutex re-enters through any view of the client. So does a set of several.
func TestSetReentersThroughAnotherView(t *testing.T) {
	c := own(t)
	root := testzk.Path(t)
	view := c.Namespace(root[1:])
	outer := acquire(t, newMulti(t, c, []string{root + "/a", root + "/b"}))
	inner, err := newMutex(t, view, "/a").Acquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err, "a mutex re-enters")
	require.NoError(t, inner.Release())
	again, err := newMulti(t, view, []string{"/a", "/b"}).Acquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err)
	require.NoError(t, again.Release())
	require.NoError(t, outer.Release())
}

// A mutex that re-enters a multi-lock has the token of its own lock. The resource of that lock must
// not see a token that is larger than the next holder's.
func TestMutexUnderAMultiLockHasTheTokenOfItsOwnLock(t *testing.T) {
	for name, opts := range map[string][]multilock.Option{"together": nil, "in order": {multilock.WithPathOrder()}} {
		t.Run(name, func(t *testing.T) {
			ctx, path := testzk.Context(t), testzk.Path(t)
			client := testzk.Connected(t, testzk.Connect())
			m, err := multilock.New(client, []string{path + "/b", path + "/a"}, opts...)
			require.NoError(t, err)
			whole, err := m.Acquire(ctx)
			require.NoError(t, err)
			for i, name := range []string{"/b", "/a"} {
				mu, err := mutex.New(client, path+name)
				require.NoError(t, err)
				reentrant, err := mu.Acquire(whole.Context(ctx))
				require.NoError(t, err)
				require.Equal(t, whole.Tokens()[i], reentrant.Token())
				require.Equal(t, whole.Tokens()[i:i+1], reentrant.Tokens())
				require.Equal(t, whole.Paths(), reentrant.Paths())
				require.NoError(t, reentrant.Release())
			}
			require.NoError(t, whole.Release())
		})
	}
}
