package conn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// sendAndTake sends n requests on a link, and takes the requests when all have been sent.
func (l *link) sendAndTake(t *testing.T, n int) {
	t.Helper()
	first := l.unusedXid()
	for range n {
		l.send(Sync("/"), func(Reply) {})
	}
	for i := range n {
		_, ok := l.take(first + int32(i))
		require.True(t, ok)
	}
	require.Empty(t, l.waiting)
}

func TestArrayOfWaitingRequestsIsUsedAgainUnlessItIsLarge(t *testing.T) {
	l := newLink(&pieces{}, unstarted("a:1"), "a:1", 0)
	l.sendAndTake(t, 100)
	kept := cap(l.array)
	require.GreaterOrEqual(t, kept, 100)
	l.sendAndTake(t, 100)
	require.Equal(t, kept, cap(l.array), "another array for the same number of requests")
	l.sendAndTake(t, 100_000)
	require.LessOrEqual(t, cap(l.array), maxKeptRequests)
	l.sendAndTake(t, 100)
	require.GreaterOrEqual(t, cap(l.array), 100)
	require.LessOrEqual(t, cap(l.array), kept)
}
