package guide

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/pages"
)

// goFiles have the fragments of Go that pages show. The files of other modules run in the tests of these.
var goFiles = []string{
	"*_test.go", "../porting/*_test.go", "../../examples/start/*.go", "../../examples/migrate/locks.go",
	"../../contrib/*/*_test.go",
}

func TestLinksOfAllPagesHaveTargets(t *testing.T) {
	for _, page := range files(t, ".md") {
		broken, err := pages.Broken(page)
		require.NoError(t, err)
		assert.Empty(t, broken, page)
	}
}

// The fragments of Java and those of testing.md, which are whole files, have tests of their own.
func TestPagesShowTheFragmentsAsTheyAre(t *testing.T) {
	want, err := pages.Fragments(glob(t, goFiles...)...)
	require.NoError(t, err)
	used := map[string]bool{}
	for _, page := range files(t, ".md") {
		if isRecord(page) || filepath.Base(page) == "testing.md" {
			continue
		}
		shown, err := pages.Shown(read(t, page), "go")
		require.NoError(t, err, page)
		for name, code := range shown {
			assert.Equal(t, want[name], code, "%s: fragment %s", page, name)
			used[name] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(used)),
		"the fragments, and those that a page shows")
}

func TestEveryGoFragmentRuns(t *testing.T) {
	require.NoError(t, pages.NotRun(glob(t, "*_test.go")...))
}

// A reader in a hurry gets to the end of it.
func TestREADMEIsShort(t *testing.T) {
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		text := read(t, filepath.Join(root, page))
		assert.LessOrEqual(t, strings.Count(text, "\n"), 160, page)
		assert.Contains(t, text, "\n```sh\ngo run ./examples/quickstart\n```\n", page)
		assert.Contains(t, text, "\n```sh\nmake test\n```\n", page)
	}
}

func TestREADMENamesTheVersionOfGo(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))
	require.NotNil(t, version)
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		assert.Contains(t, read(t, filepath.Join(root, page)), "\n- Go "+version[1]+" ", page)
	}
}

// A picture has a title for readers that cannot see it, and a background, so that a dark page does not
// shine through.
func TestPicturesAreComplete(t *testing.T) {
	all := glob(t, "../pictures/*.svg")
	require.Len(t, all, 3)
	for _, name := range all {
		var picture struct {
			Title string     `xml:"title"`
			Rects []struct { // the background is the first one
				Width string `xml:"width,attr"`
				Fill  string `xml:"fill,attr"`
			} `xml:"rect"`
		}
		require.NoError(t, xml.Unmarshal([]byte(read(t, name)), &picture), name)
		assert.NotEmpty(t, picture.Title, name)
		require.NotEmpty(t, picture.Rects, name)
		assert.Equal(t, "100%", picture.Rects[0].Width, name)
		assert.NotEmpty(t, picture.Rects[0].Fill, name)
		wellFormed(t, name)
	}
}

func wellFormed(t *testing.T, name string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(read(t, name)))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, name)
	}
}

// isRecord reports whether a page records a decision. Its code is what was thought of then.
func isRecord(page string) bool { return filepath.Base(filepath.Dir(page)) == "adr" }
