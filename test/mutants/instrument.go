package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of the code. Its identity does not depend on numbers of lines.
type mutant struct {
	id       int
	file     string // with its folder, from the root of the module
	function string
	change   string // what is changed, and how
	kind     kind
	line     int
}

// kind is a kind of mutants.
type kind string

const (
	conditions kind = "conditions" // inverted, or with another limit
	statements kind = "statements" // left out
	failures   kind = "errors"     // not returned
)

var kinds = []kind{conditions, statements, failures}

// key identifies a mutant as long as its function does not change.
func (m mutant) key() string { return fmt.Sprintf("%s: %s: %s", m.file, m.function, m.change) }

// source is a package whose files contain all mutants. Each is active if it is chosen at run time, so
// the package is compiled once.
type source struct {
	mutants []mutant
	files   map[string]string // by name
}

// instrument puts all mutants into the files of the package in a folder that are compiled here.
func instrument(folder string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &source{files: map[string]string{}}
	seen := map[string]int{}
	for _, name := range names {
		compiled, err := build.Default.MatchFile(folder, filepath.Base(name))
		if err != nil {
			return nil, err
		}
		if !compiled || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := s.file(name, seen)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.files[name] = text
	}
	if len(s.mutants) == 0 {
		return nil, fmt.Errorf("there is nothing to change in %s", folder)
	}
	return s, nil
}

// groups returns the mutants by kind and file, those of one kind in all files first.
func (s *source) groups() (all [][]mutant) {
	for _, k := range kinds {
		for _, name := range slices.Sorted(maps.Keys(s.files)) {
			file := filepath.ToSlash(name)
			var group []mutant
			for _, m := range s.mutants {
				if m.file == file && m.kind == k {
					group = append(group, m)
				}
			}
			if group != nil {
				all = append(all, group)
			}
		}
	}
	return all
}

// file returns a file with mutants.
func (s *source) file(name string, seen map[string]int) (string, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	before := len(s.mutants)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			c := &changer{source: s, fset: fset, file: filepath.ToSlash(name), function: nameOf(f), seen: seen}
			c.block(f.Body, f.Type)
		}
	}
	if len(s.mutants) > before {
		addImport(parsed)
	}
	var text bytes.Buffer
	if err := format.Node(&text, fset, parsed); err != nil {
		return "", err
	}
	return text.String(), nil
}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return fmt.Sprintf("%v.%s", t, f.Name.Name)
}

// runtimePath is the package that knows which mutant is active. It exists in the overlay only.
const runtimePath = "github.com/docent-zk/docent/internal/mutantruntime"

func addImport(f *ast.File) {
	spec := &ast.ImportSpec{
		Name: ast.NewIdent("mutants"), Path: &ast.BasicLit{Kind: token.STRING, Value: `"` + runtimePath + `"`},
	}
	f.Decls = slices.Insert(f.Decls, 0, ast.Decl(&ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}}))
}
