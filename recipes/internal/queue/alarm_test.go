package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A warning that came late must not cost the same wait its next one.
func TestWarningsAreLimitedByWhenTheyWereDue(t *testing.T) {
	var q quiet
	due := time.Now().Add(-time.Second)
	require.True(t, q.mayWarn(due, time.Minute))
	require.False(t, q.mayWarn(due, time.Minute))
	require.False(t, q.mayWarn(due.Add(-2*time.Minute), time.Minute), "of a wait that was due before, and is only now")
	require.False(t, q.mayWarn(due.Add(time.Minute-1), time.Minute))
	require.True(t, q.mayWarn(due.Add(time.Minute), time.Minute))
	require.False(t, q.mayWarn(due.Add(time.Minute), time.Minute))
}
