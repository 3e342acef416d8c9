package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A late warning must not suppress the next warning of the same wait.
func TestWarningsAreLimitedByWhenTheyWereDue(t *testing.T) {
	var q rateLimit
	due := time.Now().Add(-time.Second)
	require.True(t, q.mayWarn(due, time.Minute))
	require.False(t, q.mayWarn(due, time.Minute))
	require.False(t, q.mayWarn(due.Add(-2*time.Minute), time.Minute), "an earlier warning that comes late")
	require.False(t, q.mayWarn(due.Add(time.Minute-1), time.Minute))
	require.True(t, q.mayWarn(due.Add(time.Minute), time.Minute))
	require.False(t, q.mayWarn(due.Add(time.Minute), time.Minute))
}
