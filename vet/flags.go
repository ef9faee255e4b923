package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// underFlags returns the variables that are passed to a call, or have a method
// called, under a flag: a boolean variable that is assigned or tested in
// several places. The flag decides which paths are possible, and a flow that
// does not distinguish its values knows too little about these variables to
// report a leak.
func (c *checker) underFlags(tests []*ast.IfStmt) map[*types.Var]bool {
	flags := func(s *ast.IfStmt) (list []*types.Var) {
		var find func(e ast.Expr)
		find = func(e ast.Expr) {
			switch e := ast.Unparen(e).(type) {
			case *ast.UnaryExpr:
				find(e.X)
			case *ast.BinaryExpr:
				if e.Op == token.LAND || e.Op == token.LOR {
					find(e.X)
					find(e.Y)
				}
			case *ast.Ident:
				if v, ok := c.pass.TypesInfo.Uses[e].(*types.Var); ok {
					list = append(list, v)
				}
			}
		}
		find(s.Cond)
		return list
	}
	tested := map[*types.Var]int{}
	for _, s := range tests {
		for _, v := range flags(s) {
			tested[v]++
		}
	}
	under := map[*types.Var]bool{}
	for _, s := range tests {
		for _, flag := range flags(s) {
			if tested[flag] < 2 && c.assigns[flag] < 2 {
				continue
			}
			ast.Inspect(s, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					c.inCall(call, under)
				}
				return true
			})
		}
	}
	return under
}

// inCall adds the variables that a call has as its arguments and receiver.
func (c *checker) inCall(call *ast.CallExpr, to map[*types.Var]bool) {
	operands := call.Args
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		operands = append(operands[:len(operands):len(operands)], sel.X)
	}
	for _, e := range operands {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if v, ok := c.pass.TypesInfo.Uses[id].(*types.Var); ok && kindOf(v.Type()) != nothing {
				to[v] = true
			}
		}
	}
}
