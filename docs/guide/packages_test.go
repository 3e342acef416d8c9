package guide

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notRun are the packages whose examples cannot run by themselves, and why.
var notRun = map[string]string{
	"recipes/locktest": "its functions take the testing.T of a test; own_test.go runs them",
	"zktest/sim":       "its functions take the testing.T of a test; sim_test.go runs the scenario",
	"zktest/ensemble":  "it starts ZooKeeper, which may not be installed",
}

// packages returns the documentation, with examples, of all packages that others can import, and of all
// commands, by their folders.
func packages(t *testing.T) map[string]*doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	parsed := map[string][]*ast.File{}
	code := map[string]bool{}
	for _, name := range files(t, ".go") {
		folder, err := filepath.Rel(root, filepath.Dir(name))
		require.NoError(t, err)
		folder = filepath.ToSlash(folder)
		if regexp.MustCompile(`(^|/)(internal|test|docs|model)(/|$)`).MatchString(folder) {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed[folder] = append(parsed[folder], file)
		code[folder] = code[folder] || !strings.HasSuffix(name, "_test.go")
	}
	all := map[string]*doc.Package{}
	for folder, list := range parsed {
		if !code[folder] {
			continue
		}
		p, err := doc.NewFromFiles(fset, list, folder)
		require.NoError(t, err, folder)
		all[folder] = p
	}
	require.Contains(t, all, "recipes/mutex")
	require.Contains(t, all, "contrib/sqllock")
	require.Contains(t, all, "cmd/docent")
	return all
}

// pkg.go.dev shows the first sentence in its lists.
func TestEveryPackageBeginsWithASummary(t *testing.T) {
	for folder, p := range packages(t) {
		summary := p.Synopsis(p.Doc)
		assert.True(t, strings.HasSuffix(summary, "."), "%s: %q is no sentence", folder, summary)
		switch {
		case p.Name != "main":
			assert.True(t, strings.HasPrefix(summary, "Package "+p.Name+" "), "%s: %q", folder, summary)
		case strings.HasPrefix(folder, "cmd/"):
			assert.True(t, strings.HasPrefix(summary, "Command "+filepath.Base(folder)+" "), "%s: %q", folder, summary)
		default:
			name := filepath.Base(folder) + " "
			assert.True(t, strings.HasPrefix(strings.ToLower(summary), name), "%s: %q", folder, summary)
		}
	}
}

func TestEveryPackageHasAnExampleThatRuns(t *testing.T) {
	without := map[string]bool{}
	for folder, p := range packages(t) {
		if p.Name == "main" || strings.HasPrefix(folder, "examples") {
			continue
		}
		all := examples(p)
		require.NotEmpty(t, all, folder)
		if !slices.ContainsFunc(all, func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }) {
			without[folder] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(notRun)), slices.Collect(maps.Keys(without)),
		"the packages without an example that runs")
}

// examples returns the examples of a package and of what it exports.
func examples(p *doc.Package) []*doc.Example {
	all := slices.Clone(p.Examples)
	for _, f := range p.Funcs {
		all = append(all, f.Examples...)
	}
	for _, t := range p.Types {
		all = append(all, t.Examples...)
		for _, f := range slices.Concat(t.Funcs, t.Methods) {
			all = append(all, f.Examples...)
		}
	}
	return all
}
