package browser

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

const (
	repository = "../.."
	siteFolder = "../../bin/site" // of make site
)

// siteFile is what a file of the site has to do with links.
type siteFile struct {
	links   []string        // of all kinds: to pages, pictures, scripts
	loaded  []string        // the links to what a browser loads with the page
	anchors map[string]bool // nil for a file that is no page
}

// siteFiles returns the files of the site by their paths.
func siteFiles(t *testing.T) map[string]siteFile {
	t.Helper()
	require.DirExists(t, siteFolder, "make site makes it")
	all := map[string]siteFile{}
	tree := os.DirFS(siteFolder)
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if path.Ext(name) != ".html" {
			all[name] = siteFile{}
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		all[name] = parsePage(string(text))
		return err
	}))
	return all
}

// parsePage returns the links and anchors of a page.
func parsePage(text string) siteFile {
	found := siteFile{anchors: map[string]bool{}}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken, html.SelfClosingTagToken:
			found.add(tokens.Token())
		}
	}
}

func (f *siteFile) add(tag html.Token) {
	for _, a := range tag.Attr {
		switch {
		case a.Key == "id":
			f.anchors[a.Val] = true
		case a.Key == "src", a.Key == "href":
			f.links = append(f.links, a.Val)
			if a.Key == "src" || tag.Data == "link" {
				f.loaded = append(f.loaded, a.Val)
			}
		}
	}
}

// Links to other sites are not asked, but for those to files of this repository.
func TestLinksOfTheSiteHaveTargets(t *testing.T) {
	files := siteFiles(t)
	for _, name := range []string{"index.html", "docs/index.html", "zh/index.html", "zh/docs/start.html"} {
		require.NotEmpty(t, files[name].links, name)
	}
	for name, file := range files {
		for _, link := range file.links {
			assert.NoError(t, checkLink(files, name, link), name)
		}
		for _, link := range file.loaded {
			assert.NotRegexp(t, `^(https?:)?//`, link, "%s: a page loads nothing from another site", name)
		}
	}
}

func TestALinkWithoutATargetIsFound(t *testing.T) {
	files := map[string]siteFile{"a/b.html": parsePage(`<h1 id="有">x</h1>`), "a/c.svg": {}}
	for _, link := range []string{"b.html", "/a/b.html", "#有", "b.html#%E6%9C%89", "c.svg", "https://example.org",
		blobs + "README.md", trees + "framework", "data:,"} {
		require.NoError(t, checkLink(files, "a/b.html", link), link)
	}
	for _, link := range []string{"c.html", "/b.html", "/a/", "#x", "/a/b.html#x", "d.svg", blobs + "no.md"} {
		require.Error(t, checkLink(files, "a/b.html", link), link)
	}
}

const (
	blobs = "https://github.com/docent-zk/docent/blob/main/"
	trees = "https://github.com/docent-zk/docent/tree/main/"
)

// checkLink returns an error if a link of a page has no target.
func checkLink(files map[string]siteFile, page, link string) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	for _, prefix := range []string{blobs, trees} {
		if file, found := strings.CutPrefix(link, prefix); found {
			file, _, _ = strings.Cut(file, "#")
			_, err := os.Stat(filepath.Join(repository, filepath.FromSlash(file)))
			return err
		}
	}
	if u.Scheme != "" {
		return nil
	}
	name := page
	if u.Path != "" {
		name = path.Join("/", path.Dir(page), u.Path)[1:]
		if strings.HasPrefix(u.Path, "/") {
			name = path.Clean(u.Path)[1:]
		}
		if strings.HasSuffix(u.Path, "/") {
			name = path.Join(name, "index.html")
		}
	}
	target, found := files[name]
	if !found {
		return fmt.Errorf("%s: there is no file %s", link, name)
	}
	if u.Fragment != "" && !target.anchors[u.Fragment] {
		return fmt.Errorf("%s: %s has no such anchor", link, name)
	}
	return nil
}

// servedSite is the site on a server that notes the requests that it cannot answer.
type servedSite struct {
	address string
	mu      sync.Mutex
	refused []string
}

func serveSite(t *testing.T) *servedSite {
	t.Helper()
	s := &servedSite{}
	files := http.FileServer(http.Dir(siteFolder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(siteFolder, filepath.FromSlash(path.Clean(r.URL.Path)))); err != nil {
			s.mu.Lock()
			s.refused = append(s.refused, r.URL.Path)
			s.mu.Unlock()
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.address = server.URL + "/"
	return s
}

// guideTitles returns the titles of the pages in the table of a guide, in their order.
func guideTitles(t *testing.T, guide string) (titles []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, guide))
	require.NoError(t, err)
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \| \[([^\]]+)\]`).FindAllStringSubmatch(string(text), -1) {
		titles = append(titles, row[1])
	}
	require.NotEmpty(t, titles)
	return titles
}

func TestSiteInABrowser(t *testing.T) {
	pages := siteFiles(t)
	served := serveSite(t)
	b := (&tools{browser: newBrowser(t)}).open(t)
	for _, c := range []struct{ page, title, guide, search, finds string }{
		{"", "docent", "docs/README.md", "fencing", "Glossary"},
		{"docs/concepts.html", "Concepts | docent", "docs/README.md", "predecessor", "Concepts"},
		{"zh/", "docent", "docs/zh/README.md", "令牌", "概念"},
	} {
		b.run(chromedp.EmulateViewport(1280, 844))
		b.goTo(served.address + c.page)
		b.becomes(hydrated)
		assert.Equal(t, c.title, js[string](b, "document.title"))
		titles := guideTitles(t, c.guide)
		entries := js[[]string](b, `[...document.querySelectorAll(".VPSidebarItem.level-1 a")].map((a) => a.innerText)`)
		require.Greater(t, len(entries), len(titles), c.page)
		assert.Equal(t, titles, entries[:len(titles)], "the navigation of %q", c.page)
		b.shoot("site-wide-" + strings.NewReplacer("/", "-", ".", "-").Replace(c.page))

		b.run(
			chromedp.Click(chromedp.CSS(".DocSearch-Button")),
			chromedp.SendKeys(chromedp.CSS("#localsearch-input"), c.search))
		const found = `[...document.querySelectorAll("#localsearch-list .title")].some((e) => e.innerText.includes(%q))`
		b.becomes(fmt.Sprintf(found, c.finds))
		assert.Empty(t, b.complaints(), c.page)
	}
	for name, page := range pages {
		if page.anchors == nil || name == "404.html" || strings.HasPrefix(name, "docs/adr/0") {
			continue
		}
		b.run(chromedp.EmulateViewport(390, 844))
		b.goTo(served.address + name)
		b.becomes(hydrated)
		assert.LessOrEqual(t, js[int](b, "document.documentElement.scrollWidth"), 390, "%s scrolls sideways", name)
		broken := `[...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)`
		assert.Empty(t, js[[]string](b, broken), "%s: pictures that are not shown", name)
		b.shoot("site-phone-" + strings.NewReplacer("/", "-", ".", "-").Replace(name))
		assert.Empty(t, b.complaints(), name)
	}
	served.mu.Lock()
	defer served.mu.Unlock()
	assert.Empty(t, served.refused, "requests for files that the site does not have")
}

// hydrated tells that the scripts of the site have taken over the page.
const hydrated = `document.readyState === "complete" && document.querySelector("#app").__vue_app__ !== undefined`
