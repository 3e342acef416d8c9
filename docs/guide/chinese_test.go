package guide

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/pages"
)

// pairs returns the pages in English by those in Chinese. A page in Chinese is beside the one in English,
// as README.zh-CN.md, or in docs/zh.
func pairs(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, page := range files(t, ".md") {
		if english, ok := strings.CutSuffix(page, ".zh-CN.md"); ok {
			found[page] = english + ".md"
		}
		if filepath.Dir(page) == filepath.Join(root, "docs/zh") {
			found[page] = filepath.Join(root, "docs", filepath.Base(page))
		}
	}
	require.GreaterOrEqual(t, len(found), 15, "%v", found)
	return found
}

func TestChinesePagesFollowTheEnglishOnes(t *testing.T) {
	for chinese, english := range pairs(t) {
		zh, en := read(t, chinese), read(t, english)
		assert.Equal(t, pages.Parts(en), pages.Parts(zh), "headings, code, links and tables of %s", chinese)
		want, err := pages.Blocks(en)
		require.NoError(t, err, english)
		got, err := pages.Blocks(zh)
		require.NoError(t, err, chinese)
		assert.Equal(t, want, got, "the blocks of code of %s", chinese)
	}
}

// The first link of a page leads to the same page in the other language. All other links of a page in
// Chinese lead to pages in Chinese, where there are any.
func TestLinksOfChinesePagesStayInChinese(t *testing.T) {
	all := pairs(t)
	hasChinese := map[string]bool{}
	for _, english := range all {
		hasChinese[english] = true
	}
	for chinese, english := range all {
		zh, en := pages.Links(read(t, chinese)), pages.Links(read(t, english))
		assert.Equal(t, relative(t, chinese, english), zh[0], "the first link of %s", chinese)
		assert.Equal(t, relative(t, english, chinese), en[0], "the first link of %s", english)
		for _, link := range zh[1:] {
			name, _, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(chinese), filepath.FromSlash(name))
			assert.False(t, hasChinese[target], "%s: %s leads to a page in English", chinese, link)
		}
	}
}

// relative returns the link that leads from a page to a target.
func relative(t *testing.T, page, target string) string {
	t.Helper()
	name, err := filepath.Rel(filepath.Dir(page), target)
	require.NoError(t, err)
	return filepath.ToSlash(name)
}
