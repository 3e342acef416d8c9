package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"3"}, {"three", "true"}, {"2", "true"}, {"-1", "true"}} {
		_, err := run(args)
		require.Error(t, err, "%q", args)
	}
}

func TestCommandFindsServersAndItsStatusIsReturned(t *testing.T) {
	realzk.Need(t)
	code, err := run([]string{"1", "sh", "-c", `[ "${ZOOKEEPER##*:}" -gt 0 ] && exit 3`})
	require.NoError(t, err)
	require.Equal(t, 3, code)
}

func TestCommandThatDoesNotStart(t *testing.T) {
	realzk.Need(t)
	_, err := run([]string{"1", "./no-such-command"})
	require.ErrorContains(t, err, "no-such-command")
}
