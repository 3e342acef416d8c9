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
	require.Equal(t, `share: Ann and Bob both read 0; no writer gets in
write: Ann makes it 1; no reader gets in
write: Ann is done; Bob reads 1
downgrade: Ann makes it 2 and becomes a reader; Bob gets in, no writer does
upgrade: Ann may not while Bob reads; as the only reader she may, and makes it 3
`, out.String())
}
