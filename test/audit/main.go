// Command audit checks the licences of all modules that this repository uses, in its modules and
// their tests.
//
//	audit [-root DIR] [-list]
//
// The text of each licence is compared with those that github.com/google/licensecheck knows. The run
// fails for a module without a licence, for one with a licence that is not in allowed, and for a text
// that is not known for the most part. What only the tests and measurements in the folder test use may
// be in exceptions.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences under which a program may be used and passed on, with its own licence,
// if their texts are passed on with it.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// exceptions are modules that have another licence, or a text that is not known, each with the reason
// why they may be used. Nothing outside of the folder test may use them.
var exceptions = map[string]string{
	"codeberg.org/go-fonts/liberation": "fonts of plots; the SIL Open Font License allows to use them",
	"github.com/ajstarks/svgo":         "draws plots; Creative Commons Attribution, named in LICENSE",
	"github.com/golang/freetype":       "draws plots; FreeType License, one of two to choose from",
}

// leastCoverage is how much of a text, in percent, must be that of known licences. The rest is the
// names of authors.
const leastCoverage = 75

func main() {
	root := flag.String("root", "../..", "the root of the repository")
	list := flag.Bool("list", false, "print each module with its licences")
	flag.Parse()
	if err := audit(*root, *list, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// audit checks all modules and prints a line that says how many there are.
func audit(root string, list bool, w io.Writer) error {
	folders, err := moduleFolders(root)
	if err != nil {
		return err
	}
	used := map[string]module{}
	for _, folder := range folders {
		if err := addUsed(used, folder, isTest(root, folder)); err != nil {
			return err
		}
	}
	var wrong []error
	for _, m := range sorted(used) {
		licences, err := m.licences()
		if err == nil {
			err = check(licences)
		}
		if _, ok := exceptions[m.Path]; err != nil && !(ok && m.onlyTests) {
			wrong = append(wrong, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
		if list {
			fmt.Fprintf(w, "%s %s: %s\n", m.Path, m.Version, strings.Join(licences, ", "))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Fprintf(w, "the licences of %d modules, which %d modules of this repository use, are allowed\n",
		len(used), len(folders))
	return nil
}

// moduleFolders returns the folders of the modules of a repository.
func moduleFolders(root string) (folders []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.Name() == "go.mod":
			folders = append(folders, filepath.Dir(path))
		}
		return nil
	})
	if err == nil && len(folders) == 0 {
		err = fmt.Errorf("there is no go.mod in %s", root)
	}
	return folders, err
}

// isTest reports whether a folder is in the folder test.
func isTest(root, folder string) bool {
	name, err := filepath.Rel(filepath.Join(root, "test"), folder)
	return err == nil && filepath.IsLocal(name)
}

// module is a module that is used, as "go list" prints it.
type module struct {
	Path    string
	Version string
	Dir     string
	Main    bool
	Replace *module

	onlyTests bool // only the folder test uses it
}

// addUsed adds the modules of all packages that the packages and tests in a folder need. Modules of
// the repository are replaced by folders, and have no version.
func addUsed(used map[string]module, folder string, inTest bool) error {
	list := exec.Command("go", "list", "-deps", "-test", "-json=Module", "./...")
	list.Dir = folder
	var problems strings.Builder
	list.Stderr = &problems
	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w\n%s", folder, err, problems.String())
	}
	for d := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m := p.Module
		if m == nil || m.Main || m.Replace != nil && m.Replace.Version == "" {
			continue // the standard library, or this repository
		}
		key := m.Path + "@" + m.Version
		before, known := used[key]
		m.onlyTests = inTest && (!known || before.onlyTests)
		used[key] = *m
	}
}

func sorted(used map[string]module) []module {
	var all []module
	for _, m := range used {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return all
}

// licences returns the names of the licences in the folder of a module.
func (m module) licences() (names []string, err error) {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.IsDir() || !isLicence(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return nil, err
		}
		found, err := recognize(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isLicence reports whether a file has the text of a licence, by its name.
func isLicence(name string) bool {
	name = strings.ToLower(name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".md"), ".txt")
	return name == "copying" || name == "license" || name == "licence" || strings.HasPrefix(name, "license-")
}

// recognize returns the licences that a text consists of.
func recognize(text []byte) (names []string, err error) {
	coverage := licensecheck.Scan(text)
	for _, match := range coverage.Match {
		if !match.IsURL {
			names = append(names, match.ID)
		}
	}
	if coverage.Percent < leastCoverage {
		return nil, fmt.Errorf("only %.0f%% of the text is that of a known licence %v", coverage.Percent, names)
	}
	return names, nil
}

// check returns an error unless there are licences, and all are allowed.
func check(licences []string) error {
	if len(licences) == 0 {
		return errors.New("there is no licence")
	}
	for _, name := range licences {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("the licence %s is not allowed: %v", name, allowed)
		}
	}
	return nil
}
