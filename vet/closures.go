package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// touches is the effect of a function literal, or of a method value, on the
// variables that it captures.
type touches struct {
	uses    map[*types.Var]bool // it uses them
	ends    map[*types.Var]bool // it gives them up on every path
	mayEnd  map[*types.Var]bool // it gives them up on some path
	escapes map[*types.Var]bool // their fate is not known
	errors  map[*types.Var]bool // errors that it assigns
}

// literal returns the effect of calling e, if e is a function literal or a
// method value, or a variable that only ever has one.
func (f *flow) literal(e ast.Expr) *touches {
	e = ast.Unparen(e)
	if id, ok := e.(*ast.Ident); ok {
		v, ok := f.info.ObjectOf(id).(*types.Var)
		if !ok || f.c.assigns[v] != 1 || f.c.bound[v] == nil || v.Parent() == v.Pkg().Scope() {
			return nil
		}
		e = ast.Unparen(f.c.bound[v])
	}
	switch e := e.(type) {
	case *ast.FuncLit:
		return f.c.touches(e)
	case *ast.SelectorExpr:
		s := f.info.Selections[e]
		v := f.variable(e.X)
		if s == nil || s.Kind() != types.MethodVal || v == nil || kindOf(v.Type()) == nothing {
			return nil
		}
		t := &touches{uses: map[*types.Var]bool{v: true}}
		if kindOf(v.Type()).endsByMethod(e.Sel.Name) {
			t.ends = map[*types.Var]bool{v: true}
		}
		return t
	}
	return nil
}

// touches computes the effect of a literal on the variables that it captures.
func (c *checker) touches(lit *ast.FuncLit) *touches {
	if t, ok := c.literals[lit]; ok {
		return t
	}
	t := &touches{
		uses: map[*types.Var]bool{}, ends: map[*types.Var]bool{}, mayEnd: map[*types.Var]bool{},
		escapes: map[*types.Var]bool{}, errors: map[*types.Var]bool{},
	}
	c.literals[lit] = t // a literal that calls itself
	captured := c.captured(lit)
	f := newFlow(c, lit.Type, c.pass.TypesInfo.TypeOf(lit), c.flows.FuncLit(lit), false)
	f.outside = captured
	f.check()
	for _, v := range captured {
		t.uses[v] = true
		end := f.exits[v]
		switch {
		case f.escaped[v] || c.assignedIn(lit, v):
			t.escapes[v] = true
		case end != 0 && end&^(deadBits|none) == 0 && end&deadBits != 0:
			t.ends[v] = true
		case end&deadBits != 0:
			t.mayEnd[v] = true
		}
	}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
			for _, l := range a.Lhs {
				if v := f.variable(l); v != nil && isError(v.Type()) {
					t.errors[v] = true
				}
			}
		}
		return true
	})
	return t
}

// captured returns the variables of enclosing functions that a literal has and
// that are followed.
func (c *checker) captured(lit *ast.FuncLit) []*types.Var {
	var list []*types.Var
	seen := map[*types.Var]bool{}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v, ok := c.pass.TypesInfo.Uses[id].(*types.Var)
		if !ok || v.IsField() || seen[v] || v.Parent() == nil || v.Pkg() != c.pass.Pkg || v.Parent() == v.Pkg().Scope() {
			return true
		}
		if (v.Pos() < lit.Pos() || v.Pos() >= lit.End()) && kindOf(v.Type()) != nothing {
			seen[v] = true
			list = append(list, v)
		}
		return true
	})
	return list
}

// assignedIn reports whether a literal assigns to v or takes its address.
func (c *checker) assignedIn(lit *ast.FuncLit, v *types.Var) bool {
	found := false
	is := func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && c.pass.TypesInfo.Uses[id] == v
	}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				found = found || is(l)
			}
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && is(n.X)
		}
		return !found
	})
	return found
}

// run follows a call of a literal.
func (f *flow) run(t *touches, at ast.Node) {
	for v := range t.uses {
		switch {
		case t.escapes[v] || t.mayEnd[v]:
			f.leave(v)
		case t.ends[v]:
			f.end(v, at.Pos(), "Release")
		default:
			f.use(v, at.Pos(), "use")
		}
	}
	for err := range t.errors {
		f.inspected(err)
	}
}

// later follows a literal that other code calls, now or later.
func (f *flow) later(t *touches) {
	for v := range t.uses {
		if t.escapes[v] || t.mayEnd[v] || t.ends[v] {
			f.leave(v)
		}
	}
	for err := range t.errors {
		f.inspected(err)
	}
}

// atTheEnd follows a literal that is called at the end of this function or of
// the test.
func (f *flow) atTheEnd(t *touches, ofThis bool) {
	for v := range t.uses {
		switch {
		case t.escapes[v] && !t.ends[v] && !t.mayEnd[v]:
			f.leave(v)
		case t.ends[v] || t.mayEnd[v]:
			if of := f.owner(v); of != nil && kindOf(of.Type()) == container {
				delete(f.state, of)
			}
			r := f.state.root(v)
			if h, ok := f.state[r]; ok {
				h.deferred = h.deferred || ofThis && t.ends[v] && f.c.assigns[v] == 1
				h.always = true
				f.state[r] = h
			}
		}
	}
}
