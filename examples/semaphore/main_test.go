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
	require.Equal(t, `limit: of 3 chairs Ann has 2; Bob cannot have 2, but 1; Carl gets none
limit: a semaphore of 5 chairs at the same path fails
slots: of 3 desks Ann has [0 1], Bob [2]
limit: Ann has the only lamp; with a second one Bob gets in, and Carl does not
limit: back to 1, which takes nothing away from Ann or Bob
limit: now Bob leaves, and Carl does not get in
`, out.String())
}
