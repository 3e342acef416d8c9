package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestExample(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(testzk.Context(t), testzk.Connect(), &out))
	require.Equal(t, `atomic: 3 tills have sold 20 tickets each, 60 in all
sequence: orders [1 2 3 4 5 6 7 8 9 10 11 12], of 20 numbers taken
count: the limit is 4
count: the limit is 5
count: the limit is 6
`, out.String())
}
