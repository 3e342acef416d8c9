package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scenario is a test and what it shows.
type scenario struct {
	pain int
	test string
	says string // the first paragraph of the doc comment
}

// readScenarios returns the tests of a folder in the order of the pains, and for each pain in the
// order of files and lines.
func readScenarios(folder string) ([]scenario, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no tests in %s", folder)
	}
	slices.Sort(files)
	var all []scenario
	var errs []error
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !isTest(f) {
				continue
			}
			s, err := scenarioOf(f)
			all, errs = append(all, s), append(errs, err)
		}
	}
	slices.SortStableFunc(all, func(a, b scenario) int { return cmp.Compare(a.pain, b.pain) })
	return all, errors.Join(errs...)
}

func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain"
}

var named = regexp.MustCompile(`^TestP(\d\d)_`)

func scenarioOf(f *ast.FuncDecl) (scenario, error) {
	name := f.Name.Name
	found := named.FindStringSubmatch(name)
	if found == nil {
		return scenario{}, fmt.Errorf("%s is not named after a pain, as TestP01_WhatMustHold is", name)
	}
	pain, _ := strconv.Atoi(found[1])
	if pain < 1 || pain > len(pains) {
		return scenario{}, fmt.Errorf("%s is named after a pain that does not exist", name)
	}
	paragraph, _, _ := strings.Cut(f.Doc.Text(), "\n\n")
	says := strings.Join(strings.Fields(paragraph), " ")
	if says == "" {
		return scenario{}, fmt.Errorf("%s has no doc comment", name)
	}
	return scenario{pain, name, says}, nil
}
