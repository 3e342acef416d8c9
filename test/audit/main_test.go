package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mit = `Copyright (c) 2026 A

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO
EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR
THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// folderWith returns the folder of a module with the given files.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLicencesAreKnownByTheirTexts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		says  string // empty: allowed
	}{
		"allowed":    {map[string]string{"LICENSE": mit}, ""},
		"other name": {map[string]string{"Licence.md": mit}, ""},
		"none":       {map[string]string{"README": mit}, "there is no licence"},
		"code":       {map[string]string{"license.go": mit}, "there is no licence"},
		"unknown":    {map[string]string{"LICENSE": "All rights reserved."}, "only 0% of the text"},
		"changed":    {map[string]string{"LICENSE": mit + strings.Repeat("Not for good. ", 100)}, "of the text"},
		"second":     {map[string]string{"LICENSE": mit, "COPYING": "All rights reserved."}, "COPYING"},
	} {
		t.Run(name, func(t *testing.T) {
			licences, err := module{Dir: folderWith(t, c.files)}.licences()
			if err == nil {
				err = check(licences)
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("%v: %v, want %q", licences, err, c.says)
			}
		})
	}
}

func TestOnlyListedLicencesAreAllowed(t *testing.T) {
	if err := check([]string{"MIT", "AGPL-3.0"}); err == nil || !strings.Contains(err.Error(), "AGPL-3.0") {
		t.Fatal(err)
	}
}

func TestExceptionsAreForTestsOnly(t *testing.T) {
	for folder, want := range map[string]bool{
		"/r/test/bench": true, "/r/test": true, "/r": false, "/r/contrib/otel": false, "/r/tests": false,
	} {
		if isTest("/r", folder) != want {
			t.Errorf("%s: want %v", folder, want)
		}
	}
	here := func(inTest ...bool) module {
		used := map[string]module{}
		for _, in := range inTest {
			if err := addUsed(used, ".", in); err != nil {
				t.Fatal(err)
			}
		}
		return used["github.com/google/licensecheck@v0.3.1"]
	}
	if !here(true).onlyTests || here(true, false).onlyTests || here(false, true).onlyTests {
		t.Error("a module that is used outside of the tests counts as one of tests")
	}
}

func TestModulesOfTheRepositoryAreFound(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{".", "contrib/a", "testdata/b", ".git/c"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "go.mod"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folders, err := moduleFolders(root)
	if err != nil || len(folders) != 2 || !slices.Contains(folders, filepath.Join(root, "contrib/a")) {
		t.Fatal(folders, err)
	}
	if _, err := moduleFolders(filepath.Join(root, "contrib/a/none")); err == nil {
		t.Fatal("a folder that is missing has modules")
	}
}
