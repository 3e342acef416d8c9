package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATableKeepsItsColumns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := output{Writer: &out}.table("NAME", "N")
	for i := range 3 * mostRows {
		require.NoError(t, table.row(nil, strings.Repeat("x", 20-i%10), fmt.Sprint(i)))
		assert.Less(t, len(table.rows), mostRows, "the memory is bounded")
	}
	require.NoError(t, table.flush())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	assert.Len(t, lines, 3*mostRows+1)
	for _, line := range lines {
		assert.NotEqual(t, ' ', line[23], line)
		assert.Equal(t, "   ", line[20:23])
	}
}

func TestWhatClientsWroteCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := output{Writer: &out}.table("DATA", "B")
	require.NoError(t, table.row(nil, "\x1b[2J\nü\xff", ""))
	require.NoError(t, table.row(nil, strings.Repeat("ä", 300), "b"))
	require.NoError(t, table.flush())
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, "?[2J?ü?"+strings.Repeat(" ", 203-7+3)+"-", lines[1])
	assert.Equal(t, strings.Repeat("ä", 200)+"...   b", lines[2])
}

func TestAges(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"-":      -1,
		"0s":     999 * time.Millisecond,
		"59s":    59 * time.Second,
		"1m0s":   time.Minute,
		"59m59s": time.Hour - 1,
		"2h1m":   2*time.Hour + 119*time.Second,
		"3d23h":  4*24*time.Hour - 1,
	} {
		assert.Equal(t, want, ageText(d))
	}
	zone := time.FixedZone("east", 7200)
	assert.Equal(t, "2026-01-02T01:04:05Z", timeText(time.Date(2026, 1, 2, 3, 4, 5, 6, zone)))
	assert.Equal(t, "-", timeText(time.Time{}))
}

func TestJSONHasOneObjectALine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := output{Writer: &out, json: true}.table("A")
	for range 2 {
		require.NoError(t, table.row(map[string]any{"age_seconds": seconds(1500123 * time.Microsecond)}, "1"))
	}
	require.NoError(t, table.flush())
	assert.Equal(t, strings.Repeat(`{"age_seconds":1.5}`+"\n", 2), out.String())
}
