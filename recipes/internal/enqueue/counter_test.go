package enqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWarningsOfTheEndOfTheCounterAreLimited(t *testing.T) {
	w, begun := counterWarnings{}, time.Now()
	require.True(t, w.mayWarn("a", begun))
	require.True(t, w.mayWarn("b", begun))
	require.False(t, w.mayWarn("a", begun.Add(warnEach-1)))
	require.True(t, w.mayWarn("a", begun.Add(warnEach)))
	require.Len(t, w.last, 1, "old entries are forgotten")
}
