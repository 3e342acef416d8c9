package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// A mutex re-enters through any view of the connection; so should several.
func TestSetReentersThroughAnotherView(t *testing.T) {
	c := own(t)
	root := testzk.Path(t)
	view := c.Namespace(root[1:])
	outer := acquire(t, newMulti(t, c, []string{root + "/a", root + "/b"}))
	inner, err := newMutex(t, view, "/a").Acquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err, "a mutex does")
	require.NoError(t, inner.Release())
	again, err := newMulti(t, view, []string{"/a", "/b"}).Acquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err)
	require.NoError(t, again.Release())
	require.NoError(t, outer.Release())
}
