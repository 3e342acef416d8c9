package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// changer puts mutants into one function.
type changer struct {
	*source
	fset     *token.FileSet
	file     string
	function string
	seen     map[string]int // how often there was a mutant with this key
}

// add registers a mutant and returns its number as an expression.
func (c *changer) add(k kind, at ast.Node, format string, args ...any) ast.Expr {
	m := mutant{
		id: len(c.mutants) + 1, file: c.file, function: c.function, change: fmt.Sprintf(format, args...),
		kind: k, line: c.fset.Position(at.Pos()).Line,
	}
	c.seen[m.key()]++
	if n := c.seen[m.key()]; n > 1 {
		m.change += fmt.Sprintf(" (%d)", n)
	}
	c.mutants = append(c.mutants, m)
	return &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(m.id)}
}

// text returns the code of a node in one line.
func (c *changer) text(n ast.Node) string {
	var b bytes.Buffer
	_ = format.Node(&b, c.fset, n)
	text := strings.Join(strings.Fields(b.String()), " ")
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:100]) + "..."
	}
	return text
}

func call(function string, args ...ast.Expr) ast.Expr {
	return &ast.CallExpr{Fun: &ast.SelectorExpr{X: ast.NewIdent("mutants"), Sel: ast.NewIdent(function)}, Args: args}
}

// block changes the statements of a body of a function of type t.
func (c *changer) block(b *ast.BlockStmt, t *ast.FuncType) {
	if b != nil {
		c.list(b.List, t)
	}
}

func (c *changer) list(all []ast.Stmt, t *ast.FuncType) {
	for i, s := range all {
		all[i] = c.statement(s, t)
	}
}

// statement changes a statement, and lets a mutant leave it out.
func (c *changer) statement(s ast.Stmt, t *ast.FuncType) ast.Stmt {
	if !isDroppable(s) {
		c.inside(s, t)
		return s
	}
	id := c.add(statements, s, "without `%s`", c.text(s))
	c.inside(s, t)
	return &ast.IfStmt{
		Cond: &ast.UnaryExpr{Op: token.NOT, X: call("On", id)}, Body: &ast.BlockStmt{List: []ast.Stmt{s}},
	}
}

// isDroppable reports whether a program without the statement compiles and does something else. A
// program that does not unlock a mutex is not interesting: it hangs.
func isDroppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		return !calls(s.X, "panic", "Lock", "Unlock", "RLock", "RUnlock")
	case *ast.DeferStmt:
		return !calls(s.Call, "Unlock", "RUnlock")
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && !isBlank(s.Lhs)
	case *ast.GoStmt, *ast.SendStmt, *ast.IncDecStmt:
		return true
	}
	return false
}

func calls(e ast.Expr, names ...string) bool {
	called, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch f := called.Fun.(type) {
	case *ast.Ident:
		return slices.Contains(names, f.Name)
	case *ast.SelectorExpr:
		return slices.Contains(names, f.Sel.Name)
	}
	return false
}

func isBlank(all []ast.Expr) bool {
	return !slices.ContainsFunc(all, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return !ok || name.Name != "_"
	})
}

// inside changes what is in a statement.
func (c *changer) inside(s ast.Stmt, t *ast.FuncType) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		c.block(s, t)
	case *ast.IfStmt:
		c.init(s.Init, t)
		s.Cond = c.condition(s.Cond)
		c.block(s.Body, t)
		if s.Else != nil {
			c.inside(s.Else, t)
		}
	case *ast.ForStmt:
		c.init(s.Init, t)
		if s.Cond != nil {
			s.Cond = c.condition(s.Cond)
		}
		c.block(s.Body, t)
	case *ast.RangeStmt:
		s.X = c.expression(s.X)
		c.block(s.Body, t)
	case *ast.SwitchStmt:
		c.init(s.Init, t)
		if s.Tag != nil {
			s.Tag = c.expression(s.Tag)
		}
		c.cases(s.Body, s.Tag == nil, t)
	case *ast.TypeSwitchStmt:
		c.cases(s.Body, false, t)
	case *ast.SelectStmt:
		for _, clause := range s.Body.List {
			c.list(clause.(*ast.CommClause).Body, t)
		}
	case *ast.LabeledStmt:
		c.inside(s.Stmt, t)
	case *ast.ReturnStmt:
		c.result(s, t)
	case *ast.ExprStmt:
		s.X = c.expression(s.X)
	case *ast.AssignStmt:
		c.expressions(s.Rhs)
	case *ast.SendStmt:
		s.Value = c.expression(s.Value)
	case *ast.DeferStmt:
		c.expression(s.Call)
	case *ast.GoStmt:
		c.expression(s.Call)
	}
}

// init changes a statement in front of a condition, which cannot be left out.
func (c *changer) init(s ast.Stmt, t *ast.FuncType) {
	if s != nil {
		c.inside(s, t)
	}
}

func (c *changer) cases(body *ast.BlockStmt, conditions bool, t *ast.FuncType) {
	for _, clause := range body.List {
		one := clause.(*ast.CaseClause)
		if conditions {
			for i, e := range one.List {
				one.List[i] = c.condition(e)
			}
		}
		c.list(one.Body, t)
	}
}

// result changes what a function returns: another bool, or no error.
func (c *changer) result(s *ast.ReturnStmt, t *ast.FuncType) {
	types := resultTypes(t)
	if len(s.Results) != len(types) {
		c.expressions(s.Results)
		return
	}
	for i, e := range s.Results {
		name, _ := types[i].(*ast.Ident)
		switch {
		case name != nil && name.Name == "bool":
			s.Results[i] = c.condition(e)
		case name != nil && name.Name == "error" && !isNil(e):
			id := c.add(failures, e, "no error in place of `%s`", c.text(e))
			s.Results[i] = call("Error", id, c.expression(e))
		default:
			s.Results[i] = c.expression(e)
		}
	}
}

func isNil(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "nil"
}

func resultTypes(t *ast.FuncType) (all []ast.Expr) {
	if t.Results == nil {
		return nil
	}
	for _, f := range t.Results.List {
		for range max(1, len(f.Names)) {
			all = append(all, f.Type)
		}
	}
	return all
}

// condition changes a bool: each part of it is inverted by a mutant.
func (c *changer) condition(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		e.X = c.condition(e.X)
		return e
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			e.X, e.Y = c.condition(e.X), c.condition(e.Y)
			return e
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			e.X = c.condition(e.X)
			return e
		}
	}
	id := c.add(conditions, e, "not `%s`", c.text(e))
	if b, ok := e.(*ast.BinaryExpr); ok {
		if function, other := limits(b.Op); function != "" {
			limit := c.add(conditions, e, "`%s` in place of `%s` in `%s`", other, b.Op, c.text(e))
			return call("Not", id, call(function, limit, c.expression(b.X), c.expression(b.Y)))
		}
	}
	if b, ok := e.(*ast.BinaryExpr); ok { // its operands only: the comparison is changed already
		b.X, b.Y = c.expression(b.X), c.expression(b.Y)
		return call("Not", id, b)
	}
	return call("Not", id, c.expression(e))
}

// limits returns the function for a comparison whose limit a mutant moves, and the other comparison.
func limits(op token.Token) (function, other string) {
	switch op {
	case token.LSS:
		return "Less", "<="
	case token.LEQ:
		return "LessOrEqual", "<"
	case token.GTR:
		return "Greater", ">="
	case token.GEQ:
		return "GreaterOrEqual", ">"
	}
	return "", ""
}

func (c *changer) expressions(all []ast.Expr) {
	for i, e := range all {
		all[i] = c.expression(e)
	}
}

// expression changes the conditions in an expression, and the functions.
func (c *changer) expression(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return c.condition(e)
		}
		e.X, e.Y = c.expression(e.X), c.expression(e.Y)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			e.X = c.condition(e.X)
		} else {
			e.X = c.expression(e.X)
		}
	case *ast.ParenExpr:
		e.X = c.expression(e.X)
	case *ast.CallExpr:
		c.expressions(e.Args)
		if f, ok := e.Fun.(*ast.FuncLit); ok {
			c.block(f.Body, f.Type)
		} else if f, ok := e.Fun.(*ast.SelectorExpr); ok {
			f.X = c.expression(f.X)
		}
	case *ast.FuncLit:
		c.block(e.Body, e.Type)
	case *ast.CompositeLit:
		for i, one := range e.Elts {
			if pair, ok := one.(*ast.KeyValueExpr); ok {
				pair.Value = c.expression(pair.Value)
			} else {
				e.Elts[i] = c.expression(one)
			}
		}
	}
	return e
}
