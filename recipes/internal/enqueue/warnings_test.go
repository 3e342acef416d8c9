package enqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWarningsAreLimited(t *testing.T) {
	w, begun := warnings{}, time.Now()
	require.True(t, w.may(warning{"a", "counter"}, begun))
	require.True(t, w.may(warning{"b", "counter"}, begun))
	require.True(t, w.may(warning{"a", "other lock"}, begun))
	require.False(t, w.may(warning{"a", "counter"}, begun.Add(warnEach-1)))
	require.True(t, w.may(warning{"a", "counter"}, begun.Add(warnEach)))
	require.Len(t, w.last, 1, "old entries are forgotten")
}
