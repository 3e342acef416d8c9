package striped

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse reads arbitrary names of registrations.
func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"", "stripes", "stripes-", "stripes--", "stripes-16-0000000003", "_c_x-stripes-16-8-0000000003",
		"stripes-0-1", "stripes--1-2", "stripes-99999999999999999999-1", "stripes-8-stripes-9-1",
		"stripes-8--2147483648",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, numbers, ok := parse(name)
		if !ok {
			return
		}
		require.Equal(t, name, n.Name)
		require.NotEmpty(t, numbers)
		require.NotEmpty(t, text(slices.Concat(numbers)))
		require.Contains(t, name, nodeKind+"-")
		require.LessOrEqual(t, len(numbers), strings.Count(name, "-"))
	})
}
