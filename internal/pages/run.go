package pages

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"strings"
)

// NotRun returns an error if a fragment in these test files is a part of no function, or of one that
// no test and no example of the files calls.
func NotRun(names ...string) error {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	run := thatRun(files)
	for _, file := range files {
		for name, funcs := range fragmentFuncs(file) {
			if len(funcs) == 0 {
				return fmt.Errorf("%s is no function, and part of none", name)
			}
			for _, f := range funcs {
				if !run[f] {
					return fmt.Errorf("%s: no test and no example calls %s", name, f)
				}
			}
		}
	}
	return nil
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
