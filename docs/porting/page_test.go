package porting

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

// pages are the pages that show fragments.
var pages = []string{"../porting-from-curator.md", "../migration.md", "../deploying.md"}

// goFiles have the fragments in Go. Those of the example run in its own tests.
var goFiles = []string{"*_test.go", "../../examples/migrate/locks.go"}

const javaFiles = "../../test/interop/java/fragments/*.java"

func TestPagesShowTheFragmentsAsTheyAre(t *testing.T) {
	var text strings.Builder
	for _, page := range pages {
		text.WriteString(readFile(t, page))
	}
	for language, files := range map[string][]string{"go": goFiles, "java": {javaFiles}} {
		t.Run(language, func(t *testing.T) {
			want, got := fragments(t, files...), shown(t, text.String(), language)
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)),
				"the fragments, and the fragments that the pages show")
			for name := range want {
				require.Equal(t, want[name], got[name], name)
			}
		})
	}
}

func TestEveryGoFragmentRuns(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range glob(t, "*_test.go") {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	run := thatRun(files)
	for _, file := range files {
		for name, funcs := range fragmentFuncs(file) {
			require.NotEmpty(t, funcs, "%s is no function, and part of none", name)
			for _, f := range funcs {
				require.True(t, run[f], "%s: no test and no example calls %s", name, f)
			}
		}
	}
}

func TestJavaFragmentsCompile(t *testing.T) {
	realzk.Need(t)
	peers.Java(t, javaFiles)
}

func TestLinksOfThePagesHaveTargets(t *testing.T) {
	for _, page := range pages {
		links := regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(readFile(t, page), -1)
		require.NotEmpty(t, links)
		for _, link := range links {
			if strings.HasPrefix(link[1], "https://") {
				continue
			}
			name, anchor, _ := strings.Cut(link[1], "#")
			file := page
			if name != "" {
				file = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", link[1], err)
			} else if anchor != "" {
				assert.Contains(t, anchors(readFile(t, file)), anchor, link[1])
			}
		}
	}
}

var (
	fence  = regexp.MustCompile("(?m)(?:^<!-- fragment (\\S+) -->\n)?^```(\\w+)\n((?s:.*?))^```$")
	begin  = regexp.MustCompile(`(?m)^[ \t]*// fragment `)
	region = regexp.MustCompile(`(?m)^[ \t]*// fragment (\S+)\n((?s:.*?))^[ \t]*// end$`)
)

// shown returns the code blocks of a language by the names of their fragments.
func shown(t *testing.T, text, language string) map[string]string {
	found := map[string]string{}
	other := func(block []string) bool { return block[2] != language }
	blocks := slices.DeleteFunc(fence.FindAllStringSubmatch(text, -1), other)
	require.Equal(t, strings.Count(text, "```"+language), len(blocks),
		"a block of %s that does not begin a line", language)
	for _, block := range blocks {
		name, code := block[1], block[3]
		require.NotEmpty(t, name, "a block without a marker:\n%s", code)
		require.Empty(t, found[name], "%s is shown twice", name)
		found[name] = code
	}
	return found
}

// fragments returns the marked regions of files by name, without indentation.
func fragments(t *testing.T, patterns ...string) map[string]string {
	found := map[string]string{}
	var files []string
	for _, pattern := range patterns {
		files = append(files, glob(t, pattern)...)
	}
	for _, file := range files {
		text := readFile(t, file)
		regions := region.FindAllStringSubmatch(text, -1)
		require.Equal(t, len(begin.FindAllString(text, -1)), len(regions), "%s: a fragment without an end", file)
		for _, r := range regions {
			require.Empty(t, found[r[1]], "there are two fragments %s", r[1])
			found[r[1]] = outdent(r[2])
		}
	}
	require.NotEmpty(t, found)
	return found
}

// outdent removes the indentation of the first line from all lines, and the empty lines around
// them.
func outdent(text string) string {
	text = strings.Trim(text, "\n") + "\n"
	indent := regexp.MustCompile(`^[ \t]*`).FindString(text)
	return regexp.MustCompile(`(?m)^`+indent).ReplaceAllString(text, "")
}

// thatRun returns the names of the functions that run: tests, examples with an output, and
// functions that one of these mentions.
func thatRun(files []*ast.File) map[string]bool {
	run, all := map[string]bool{}, map[string]*ast.FuncDecl{}
	for _, e := range doc.Examples(files...) {
		if e.Output != "" || e.EmptyOutput {
			run["Example"+e.Name] = true
		}
	}
	var visit func(f *ast.FuncDecl)
	visit = func(f *ast.FuncDecl) {
		run[f.Name.Name] = true
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && all[id.Name] != nil && !run[id.Name] {
				visit(all[id.Name])
			}
			return true
		})
	}
	for _, file := range files {
		for _, f := range funcs(file) {
			all[f.Name.Name] = f
		}
	}
	for name, f := range all {
		if run[name] || strings.HasPrefix(name, "Test") && name != "TestMain" {
			visit(f)
		}
	}
	return run
}

// fragmentFuncs returns, by fragment, the functions that a file's fragments show in whole or in part.
func fragmentFuncs(file *ast.File) map[string][]string {
	found, name, start := map[string][]string{}, "", token.NoPos
	for _, group := range file.Comments {
		for _, c := range group.List {
			if after, ok := strings.CutPrefix(c.Text, "// fragment "); ok {
				name, start = after, c.Pos()
				found[name] = nil
			}
			if c.Text != "// end" {
				continue
			}
			for _, f := range funcs(file) {
				if f.Pos() < c.Pos() && start < f.End() {
					found[name] = append(found[name], f.Name.Name)
				}
			}
		}
	}
	return found
}

func funcs(file *ast.File) (found []*ast.FuncDecl) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			found = append(found, f)
		}
	}
	return found
}

// anchors returns the anchors that GitHub gives to headings.
func anchors(text string) (found []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		found = append(found, strings.ReplaceAll(plain, " ", "-"))
	}
	return found
}

func glob(t *testing.T, pattern string) []string {
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names, pattern)
	return names
}

func readFile(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
