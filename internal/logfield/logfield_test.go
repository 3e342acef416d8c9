package logfield

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
)

func TestIDsAreAsZooKeeperPrintsThem(t *testing.T) {
	for want, id := range map[string]Hex{
		"0x0":                0,
		"0x10000a2b3c40001":  0x10000a2b3c40001,
		"0x7fffffffffffffff": math.MaxInt64,
		"0xe000000000000001": -0x1fffffffffffffff, // of a server with a number above 127
	} {
		require.Equal(t, want, id.String())
	}
}

func TestFieldsAreText(t *testing.T) {
	log := zapcore.NewMapObjectEncoder()
	Session(0x100).AddTo(log)
	Token(0x200000003).AddTo(log)
	require.Equal(t, map[string]any{"session": "0x100", "token": "0x200000003"}, log.Fields)
}
