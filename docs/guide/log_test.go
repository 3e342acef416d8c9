package guide

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// levels are the methods of a logger, with the index of the argument that is the message.
var levels = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "Log": 1}

// The page has the beginning of a long message, and then three dots.
func TestThePageHasEachMessageOfTheLog(t *testing.T) {
	rows := messageRow.FindAllStringSubmatch(read(t, "../observability.md"), -1)
	found := 0
	for _, name := range files(t, ".go") {
		if !logs(name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if message := messageOf(n); message != "" {
				found++
				assert.True(t, slices.ContainsFunc(rows, func(row []string) bool { return has(row[1], message) }),
					"%s: %s", name, message)
			}
			return true
		})
	}
	require.Greater(t, found, 40)
}

var messageRow = regexp.MustCompile(`(?m)^\| (?:Debug|Info|Warn) \| (.*?) \|`)

// has reports whether a cell of the table has a message. One cell has several messages.
func has(cell, message string) bool {
	if begin, long := strings.CutSuffix(cell, " ..."); long {
		return strings.HasPrefix(message, begin)
	}
	return cell == message || slices.Contains(strings.Split(cell, ", "), message)
}

// logs reports whether a file is of a package that logs what the page is about.
func logs(name string) bool {
	folder, _, _ := strings.Cut(strings.TrimPrefix(name, root+"/"), "/")
	return slices.Contains([]string{"framework", "recipes", "contrib"}, folder) && !strings.HasSuffix(name, "_test.go")
}

// messageOf returns the message of a call of a logger, up to the first value in it. It returns "" for all
// other nodes.
func messageOf(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	i, ok := levels[method.Sel.Name]
	if !ok || len(call.Args) <= i {
		return ""
	}
	message, _ := text(call.Args[i])
	return message
}

// text returns the text of an expression up to the first value in it, and whether that is all of it.
func text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, all := text(e.X)
		if !all {
			return left, false
		}
		right, all := text(e.Y)
		return left + right, all
	}
	return "", false
}
