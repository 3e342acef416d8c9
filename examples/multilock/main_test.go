package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestExample(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(testzk.Context(t), testzk.Connect(), &out))
	require.Equal(t, `Ann and Bob have moved money 10 times each, in opposite directions
A has 80, B has 120
a write that comes too late is refused: its token is older than others that the account has seen
`, out.String())
}

func TestBankWritesAllOrNothing(t *testing.T) {
	b := newBank()
	require.NoError(t, b.write(entry{"A", 90, 7}, entry{"B", 110, 9}))
	require.ErrorIs(t, b.write(entry{"A", 80, 8}, entry{"B", 120, 8}), fence.ErrStale)
	require.Equal(t, []int{90, 110}, []int{b.balance("A"), b.balance("B")})
	require.NoError(t, b.write(entry{"B", 0, 9}), "the same hold may write again")
}
