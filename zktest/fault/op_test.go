package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryOpHasAName(t *testing.T) {
	for op, info := range ops {
		require.NotEmpty(t, info.name)
		require.Equal(t, info.name, op.String())
	}
	require.Equal(t, "op(77)", Op(77).String())
}

func TestTotalLeavesPingsOut(t *testing.T) {
	require.Equal(t, 3, Counts{OpPing: 5, OpCreate: 2, OpSync: 1}.Total())
	require.Equal(t, Counts{}, Counts(nil).Clone())
}
