package queuelist

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// FuzzSort sorts arbitrary names of children. A node is in the order once, and is found there.
func FuzzSort(f *testing.F) {
	f.Add("_c_a-__WRIT__0000000001\n_c_b-__READ__0000000002\n__READ__0000000000")
	f.Add("__WRIT__2147483647\n__READ__-2147483648\n__WRIT__-2147483647")
	f.Add("\n__WRIT__\n__READ__1__WRIT__2\n__WRIT__99999999999\nlock-1\n__READ__+1\n__READ__1\n__READ__01")
	d := Directory{Conflicting: []string{"__WRIT__"}, Compatible: []string{"__READ__"}}
	f.Fuzz(func(t *testing.T, text string) {
		names := slices.Compact(slices.Sorted(strings.SplitSeq(text, "\n")))
		o := d.Sort(names)
		seen := map[string]bool{}
		for _, all := range [][]locknode.Node{o.Conflicting, o.Compatible} {
			for i, n := range all {
				require.Contains(t, names, n.Name)
				require.False(t, seen[n.Name], "%q is there twice", n.Name)
				seen[n.Name] = true
				if !o.Unsorted {
					require.True(t, o.Has(n))
					require.LessOrEqual(t, CountBefore(n, all), i)
				}
			}
		}
	})
}
