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
	require.Equal(t, `4 stripes: 200 orders, 0 lost
4 stripes, and 16 with previous 4: 400 orders, 0 lost
16 with previous 4, and 16 stripes: 600 orders, 0 lost
a program with 4 stripes beside one with 16 is refused
`, out.String())
}
