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
	require.Equal(t, `the holder of the lock does not get it again
another goroutine releases it; now it can be acquired again, with a larger token: true
`, out.String())
}
