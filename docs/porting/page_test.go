package porting

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/pages"
	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

// shownIn are the pages that show the fragments of this package.
var shownIn = []string{"../porting-from-curator.md", "../migration.md", "../deploying.md"}

// goFiles have the fragments in Go. Those of the example run in its own tests.
var goFiles = []string{"*_test.go", "../../examples/migrate/locks.go"}

const javaFiles = "../../test/interop/java/fragments/*.java"

func TestPagesShowTheFragmentsAsTheyAre(t *testing.T) {
	for language, files := range map[string][]string{"go": goFiles, "java": {javaFiles}} {
		t.Run(language, func(t *testing.T) {
			want, err := pages.Fragments(glob(t, files...)...)
			require.NoError(t, err)
			require.NotEmpty(t, want)
			got := shown(t, language)
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)),
				"the fragments, and the fragments that the pages show")
			for name := range want {
				require.Equal(t, want[name], got[name], name)
			}
		})
	}
}

func TestEveryGoFragmentRuns(t *testing.T) {
	require.NoError(t, pages.NotRun(glob(t, "*_test.go")...))
}

func TestJavaFragmentsCompile(t *testing.T) {
	realzk.Need(t)
	peers.Java(t, javaFiles)
}

// shown returns the code of a language on all pages. No fragment is on two of them.
func shown(t *testing.T, language string) map[string]string {
	all := map[string]string{}
	for _, page := range shownIn {
		found, err := pages.Shown(readFile(t, page), language)
		require.NoError(t, err, page)
		for name, code := range found {
			require.NotContains(t, all, name, page)
			all[name] = code
		}
	}
	return all
}

func glob(t *testing.T, patterns ...string) (all []string) {
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		all = append(all, names...)
	}
	return all
}
