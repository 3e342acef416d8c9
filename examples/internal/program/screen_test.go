package program

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRulesGiveStyles(t *testing.T) {
	var out bytes.Buffer
	p := newPainter(&out, []Rule{
		{`worker \d+`, []Style{Blue, Cyan}},
		{`^ *\d+s`, []Style{Dim}},
		{`KILLED|killed`, []Style{Red}},
		{`\d+`, []Style{Bold}},
	})
	for text, want := range map[string]string{
		"plain\n":                "plain\n",
		"worker 1 and worker 2":  "\x1b[36mworker 1\x1b[0m and \x1b[34mworker 2\x1b[0m",
		" 12s one\n3s two\n4s\n": "\x1b[2m 12s\x1b[0m one\n\x1b[2m3s\x1b[0m two\n\x1b[2m4s\x1b[0m\n",
		"KILLED: 5":              "\x1b[1;31mKILLED\x1b[0m: \x1b[1m5\x1b[0m",
		"":                       "",
	} {
		out.Reset()
		n, err := io.WriteString(p, text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, want, out.String())
	}
}

func TestOnlyTerminalsGetColours(t *testing.T) {
	rule := Rule{"x", []Style{Red}}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")

	var buffer bytes.Buffer
	require.Same(t, &buffer, Coloured(&buffer, rule))
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	require.Same(t, file, Coloured(file, rule))

	// As a terminal, the null device is a character device.
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer device.Close()
	require.IsType(t, &painter{}, Coloured(device, rule))
	t.Setenv("NO_COLOR", "1")
	require.Same(t, device, Coloured(device, rule))
	t.Setenv("NO_COLOR", "")
	for _, kind := range []string{"", "dumb"} {
		t.Setenv("TERM", kind)
		require.Same(t, device, Coloured(device, rule), "TERM=%q", kind)
	}
}

func TestSlowOutputTakesTheTimeToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		slow := Slowly(ctx, &out)
		start := time.Now()
		_, err := io.WriteString(slow, "01234   56789")
		require.NoError(t, err)
		require.Equal(t, 10*letterTime, time.Since(start))
		cancel()
		_, err = io.WriteString(slow, "0123456789")
		require.NoError(t, err)
		require.Equal(t, 10*letterTime, time.Since(start), "no wait after the end of the context")
		require.Equal(t, "01234   567890123456789", out.String())
	})
}
