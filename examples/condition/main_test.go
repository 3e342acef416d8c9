package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestExample(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(testzk.Context(t), testzk.Connect(), &out))
	require.Equal(t, "took item 0\ntook item 1\ntook item 2\ntook item 3\ntook item 4\n", out.String())
	testzk.Empty(t, folder+"/not-full")
	testzk.Empty(t, folder+"/not-empty")
}

func TestExampleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, testzk.Connect(), &bytes.Buffer{}), context.Canceled)
}
