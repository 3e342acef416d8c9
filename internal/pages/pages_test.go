package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "# One\n\n<!-- fragment a -->\n```go\nx := 1\n```\n\n## Two `code` 三\n\n```sh\n# no heading\n```\n" +
	"[a](#one) <a id=\"own\"></a>\n\n## Two `code` 三\n"

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestBlocksOfAPage(t *testing.T) {
	blocks, err := Blocks(page)
	require.NoError(t, err)
	require.Equal(t, []Block{{"a", "go", "x := 1\n"}, {"", "sh", "# no heading\n"}}, blocks)

	_, err = Blocks(page + "  ```go\nindented\n  ```\n")
	require.Error(t, err, "a block that does not begin a line")
}

func TestShownNeedsNames(t *testing.T) {
	found, err := Shown(page, "go")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "x := 1\n"}, found)

	_, err = Shown(page, "sh")
	require.ErrorContains(t, err, "without a marker")
	_, err = Shown(page+page, "go")
	require.ErrorContains(t, err, "a is shown twice")
}

func TestFragmentsOfFiles(t *testing.T) {
	const source = "func f() {\n\t// fragment a\n\tif x {\n\t\ty()\n\t}\n\t// end\n}\n"
	found, err := Fragments(write(t, "a.go", source))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "if x {\n\ty()\n}\n"}, found)

	_, err = Fragments(write(t, "a.go", source), write(t, "b.go", source))
	require.ErrorContains(t, err, "two fragments a")
	_, err = Fragments(write(t, "a.go", strings.Replace(source, "// end", "", 1)))
	require.ErrorContains(t, err, "without an end")
}

func TestPartsOfAPage(t *testing.T) {
	require.Equal(t, []Part{
		{},
		{Level: "#"},
		{Level: "##", Links: 1},
		{Level: "##", Code: []string{"a", "c d"}, Links: 2, Rows: 3},
	}, Parts(page+"\n| `c\td` | [b](#one) |\n|---|---|\n  | `a` | `c d` |\n\n`c\nd` [e](https://example.org)\n"))
}

func TestLinksOfAPage(t *testing.T) {
	require.Equal(t, []string{"#one", "b.svg"}, Links("```go\n[no](link)\n```\n[a](#one) ![b](b.svg)\n"))
}

func TestAnchors(t *testing.T) {
	require.Equal(t, map[string]bool{"one": true, "own": true, "two-code-三": true, "two-code-三-1": true}, Anchors(page))
	assert.True(t, strings.HasPrefix(Section(page, "two-code-三"), "## Two"))
	assert.Empty(t, Section(page, "three"))
}

func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.md": "[a](#b) [c](other.md#d) [e](https://example.org) <img src=\"other.md\">\n\n" +
			"# B\n\n```go\n[no](link)\n```\n",
		"bad.md":   "[a](#b) [c](other.md#e) [f](none.md) ![g](none.svg) <img alt=\"h\" src=\"none.png\">\n",
		"other.md": "# D\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	broken, err := Broken(filepath.Join(dir, "good.md"))
	require.NoError(t, err)
	assert.Empty(t, broken)
	broken, err = Broken(filepath.Join(dir, "bad.md"))
	require.NoError(t, err)
	assert.Len(t, broken, 5, "%v", broken)
}

func TestFragmentsThatDoNotRun(t *testing.T) {
	const source = "package p\n\n// fragment a\nfunc a() {}\n\n// end\n"
	require.ErrorContains(t, NotRun(write(t, "a.go", source)), "calls a")
	require.NoError(t, NotRun(write(t, "a.go", source+"\nfunc TestA() { a() }\n")))
	require.ErrorContains(t, NotRun(write(t, "a.go", "package p\n\n// fragment a\n\n// end\n")), "part of none")
}
