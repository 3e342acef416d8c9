package exampletest

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parsed returns the configuration of an example with flags.
func Parsed[C any](t *testing.T, newConfig func(*flag.FlagSet) C, args string) C {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	c := newConfig(flags)
	require.NoError(t, flags.Parse(strings.Fields(args)))
	return c
}

// Lines requires that text has parts that match patterns, in this order.
func Lines(t *testing.T, text string, patterns ...string) {
	t.Helper()
	rest := text
	for _, want := range patterns {
		place := regexp.MustCompile(want).FindStringIndex(rest)
		require.NotNil(t, place, "%s is missing, or not in this order:\n%s", want, text)
		rest = rest[place[1]:]
	}
}
