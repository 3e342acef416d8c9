package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/overlay"
)

// changes returns what the mutants of a function change.
func changes(t *testing.T, body string) (all []string, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("a.go", []byte("package a\n\n"+body+"\n"), 0o644))
	s, err := instrument(".")
	require.NoError(t, err)
	for i, m := range s.mutants {
		require.Equal(t, i+1, m.id)
		all = append(all, m.change)
	}
	return all, s.files["a.go"]
}

func TestEachKindOfChange(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string
	}{
		"conditions": {
			"func f(a, b int, c bool) bool { if a == b && !c { return true }; return false }",
			[]string{"not `a == b`", "not `c`", "not `true`", "not `false`"},
		},
		"limits": {
			"func f(a, b int) bool { return a < b }",
			[]string{"not `a < b`", "`<=` in place of `<` in `a < b`"},
		},
		"statements": {
			"func f(a []int, c chan int) { g(); a[0] = 1; c <- 1; defer g(); go g(); a[0]++ }; func g() {}",
			[]string{
				"without `g()`", "without `a[0] = 1`", "without `c <- 1`", "without `defer g()`",
				"without `go g()`", "without `a[0]++`",
			},
		},
		"errors": {
			"func f(err error) (int, error) { if err != nil { return 0, err }; return 1, nil }",
			[]string{"not `err != nil`", "no error in place of `err`"},
		},
		"the same twice": {
			"func f(a bool) bool { if a { return a }; return a }",
			[]string{"not `a`", "not `a` (2)", "not `a` (3)"},
		},
		"cases, loops and functions": {
			"func f(a int) { for a > 0 { switch { case a == 2: func() { g() }() } } }; func g() {}",
			[]string{"not `a > 0`", "`>=` in place of `>` in `a > 0`", "not `a == 2`", "without `func() { g() }()`",
				"without `g()`"},
		},
		"nothing to unlock": {
			"type m struct{}; func (m) Lock() {}; func (m) Unlock() {}; " +
				"func f(x m) bool { x.Lock(); defer x.Unlock(); _ = x; return true }",
			[]string{"not `true`"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := changes(t, test.body)
			require.Equal(t, test.want, all)
		})
	}
}

func TestFilesOfOtherSystemsHaveNoMutants(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, constraint := range map[string]string{"a.go": "", "b.go": "//go:build never\n\n"} {
		text := constraint + "package a\n\nfunc f() bool { return true }\n"
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	s, err := instrument(".")
	require.NoError(t, err)
	require.Len(t, s.mutants, 1)
	require.Equal(t, "a.go", s.mutants[0].file)
}

// TestMutantIsActiveByItsNumber runs code with mutants.
func TestMutantIsActiveByItsNumber(t *testing.T) {
	_, text := changes(t, "import \"errors\"\n\nfunc f(a, b int) (bool, error) { if a < b { return true, nil }; "+
		"return false, errors.New(\"too large\") }")
	testFile := "package a\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n" + checks + "}\n"
	for name, content := range map[string]string{
		"go.mod":                              "module " + filepath.Dir(filepath.Dir(runtimePath)) + "\n\ngo 1.25\n",
		"a.go":                                text,
		"internal/mutantruntime/a.go":         runtimeSource,
		"a_test.go":                           testFile,
		"internal/mutantruntime/something.md": "",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	}
	binary, err := filepath.Abs("a.test")
	require.NoError(t, err)
	out, err := exec.Command("go", "test", "-c", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	all := []*test{{binary: binary, folder: ".", name: "TestF"}}
	all[0].measure(t.Context(), overlay.Dir{}, "reached", os.Stderr)
	require.Len(t, all[0].reaches, 5)
	require.Equal(t, found, tryOne(t.Context(), overlay.Dir{}, mutant{id: 1}, all), "not a < b")
	require.Equal(t, survived, tryOne(t.Context(), overlay.Dir{}, mutant{id: 2}, all), "a <= b is not tested")
	require.Equal(t, found, tryOne(t.Context(), overlay.Dir{}, mutant{id: 5}, all), "no error")
	require.Equal(t, unreached, tryOne(t.Context(), overlay.Dir{}, mutant{id: 6}, all))
}

const checks = `
	if ok, err := f(1, 2); !ok || err != nil {
		t.Fatal("1 is less")
	}
	if ok, err := f(3, 2); ok || err == nil {
		t.Fatal("3 is not less")
	}
`

func TestSurvivorsNeedAReasonAndReasonsASurvivor(t *testing.T) {
	results := []result{
		{mutant{file: "a/a.go", change: "1"}, found}, {mutant{file: "a/a.go", change: "2"}, survived},
		{mutant{file: "a/a.go", change: "3"}, unreached}, {mutant{file: "a/a.go", change: "4"}, hung},
	}
	key := func(i int) string { return results[i].key() }
	s, err := judge(results, map[string]string{key(1): "Changes nothing.", key(2): noTest + ": why."})
	require.NoError(t, err)
	require.Equal(t, score{4, 1, 1, 1, 1, 0, 0, []string{key(1), key(2)}}, s)
	_, err = judge(results, map[string]string{key(1): "Changes nothing."})
	require.ErrorContains(t, err, "not found (no test reaches it, line 0):\n"+key(2))
	_, err = judge(results[:1], map[string]string{key(0): "Changes nothing."})
	require.ErrorContains(t, err, "explained, but found by a test:\n"+key(0))
	again, err := judge(results[1:3], map[string]string{key(1): "Changes nothing.", key(2): noTest})
	require.NoError(t, err)
	require.Equal(t, s, again.since(s))
}

func TestExplanationsAreOfMutantsThatAreThere(t *testing.T) {
	s := source{mutants: []mutant{{file: "a/a.go", function: "f", change: "1"}}}
	require.NoError(t, s.checkExplained("a", map[string]string{"a/a.go: f: 1": "Why.", "b/b.go: f: 1": "Why."}))
	require.ErrorContains(t, s.checkExplained("a", map[string]string{"a/a.go: f: 2": "Why."}),
		"explained, but not there:\na/a.go: f: 2")
}

// TestKindsAreTriedOneByOne tries conditions, then statements, with tests that find none.
func TestKindsAreTriedOneByOne(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "package a\n\nfunc f(a bool) { if a { g() } }; func g() {}\n"
	require.NoError(t, os.WriteFile("a.go", []byte(text), 0o644))
	s, err := instrument(".")
	require.NoError(t, err)
	all := scoreTable{}
	try := func(of settings) error {
		of.workers = 1
		return (&runner{settings: of, w: io.Discard}).all(t.Context(), s, all, nil)
	}
	require.ErrorContains(t, try(settings{kind: "conditions"}), "a.go: f: not `a`")
	require.Equal(t, score{Mutants: 1, Untried: 1}, all["a.go"][statements])
	require.ErrorContains(t, try(settings{kind: "statements"}), "a.go: f: without `g()`")
	for _, k := range []kind{conditions, statements} {
		require.Equal(t, 1, all["a.go"][k].Unexplained, k)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	err = (&runner{settings: settings{workers: 1}, w: io.Discard}).all(ended, s, all, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "not found")
}

func TestExplanationsHaveReasons(t *testing.T) {
	t.Chdir(t.TempDir())
	read := func(text string) (map[string]string, error) {
		require.NoError(t, os.WriteFile("e", []byte(text), 0o644))
		return readExplanations("e")
	}
	all, err := read("# about\n\na.go: f: 1\n    One\n    reason.\n\na.go: f: 2\n    Another.\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.go: f: 1": "One reason.", "a.go: f: 2": "Another."}, all)
	_, err = read("a.go: f: 1\n\na.go: f: 2\n    Another.\n")
	require.ErrorContains(t, err, "no reason for a.go: f: 1")
	_, err = read("    Another.\n")
	require.ErrorContains(t, err, "a reason without a mutant")
}
