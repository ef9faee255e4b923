package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// node follows one statement or condition.
func (f *flow) node(n ast.Node) {
	f.gives = f.gives[:0]
	switch n := n.(type) {
	case *ast.AssignStmt:
		f.assign(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		lhs := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			lhs[i] = name
		}
		f.assign(lhs, n.Values)
	case *ast.ReturnStmt:
		f.ret(n)
	case *ast.DeferStmt:
		f.deferred(n.Call)
	case *ast.GoStmt:
		f.goes(n.Call)
	case *ast.ExprStmt:
		f.expr(n.X)
		f.dropped(n.X, 0)
	case *ast.SendStmt:
		f.expr(n.Chan)
		f.handOn(n.Value)
		f.called()
	case *ast.RangeStmt:
		// Its parts are separate nodes of the graph.
	case ast.Expr:
		f.expr(n)
		if r := f.c.ranges[n]; r != nil && kindOf(f.info.TypeOf(n)) == container && r.Value != nil {
			f.leave(f.variable(n)) // its elements one by one
		}
	case *ast.IncDecStmt:
		f.expr(n.X)
		if v := f.variable(n.X); v != nil {
			f.assigned(v)
		} else if id, ok := n.X.(*ast.Ident); ok {
			if v, ok := f.info.ObjectOf(id).(*types.Var); ok {
				f.assigned(v)
			}
		}
	}
}

// rangeOver assigns the next values to the variables of a range statement.
func (f *flow) rangeOver(r *ast.RangeStmt) {
	for _, e := range []ast.Expr{r.Key, r.Value} {
		if e == nil || isBlank(e) {
			continue
		}
		v := f.variable(e)
		if v == nil {
			continue
		}
		f.assigned(v)
		if kindOf(v.Type()) != nothing {
			f.gain(v, holding{is: alive}, e.Pos())
		}
	}
}

// assign follows an assignment or a declaration with values.
func (f *flow) assign(lhs, rhs []ast.Expr) {
	for i, r := range rhs {
		if v := f.variable(r); v != nil && kindOf(v.Type()) != nothing {
			f.use(v, r.Pos(), "use")
			if len(lhs) == len(rhs) && !isBlank(lhs[i]) {
				if l := f.variable(lhs[i]); l == nil || f.isPlace(l) {
					f.handOver(v) // into a field, an element, a global
				}
			}
			continue
		}
		if f.literal(r) != nil && len(lhs) == len(rhs) && f.isBound(lhs[i]) {
			continue // its effect is computed where it is called
		}
		f.expr(r)
	}
	var err *types.Var
	if len(lhs) > 0 {
		if v := f.variable(lhs[len(lhs)-1]); v != nil && isError(v.Type()) {
			err = v
			f.state.settle(v)
		}
	}
	for _, v := range f.gives {
		if h, ok := f.state[v]; ok && err != nil {
			h.pending, h.before = err, f.before[v].is
			f.state[v] = h
		}
	}
	if len(rhs) == len(lhs) && len(lhs) > 1 {
		f.swap(lhs, rhs)
		return
	}
	for i, l := range lhs {
		switch {
		case len(rhs) == len(lhs):
			f.store(l, rhs[i], 0, err)
		case len(rhs) == 1:
			f.store(l, rhs[0], i, err)
		default:
			f.store(l, nil, 0, err)
		}
	}
}

// isBound reports whether e is a variable that only ever has one function.
func (f *flow) isBound(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := f.info.ObjectOf(id).(*types.Var)
	return ok && f.c.assigns[v] == 1 && f.c.bound[v] != nil
}

// swap follows an assignment of several values at once.
func (f *flow) swap(lhs, rhs []ast.Expr) {
	values := make([]holding, len(lhs))
	for i, r := range rhs {
		if l := f.variable(lhs[i]); l == nil || kindOf(l.Type()) == nothing {
			continue
		}
		h := f.valueOf(r, 0, nil, lhs[i].Pos())
		if h.same != nil {
			h = f.state[h.same]
		}
		values[i] = h
	}
	for _, r := range rhs {
		if v := f.variable(r); v != nil && kindOf(v.Type()) != nothing {
			f.handOver(v)
		}
	}
	for i, l := range lhs {
		if v := f.variable(l); v != nil && kindOf(v.Type()) != nothing {
			f.assigned(v)
			f.gain(v, values[i], l.Pos())
		} else if isBlank(l) {
			f.dropped(rhs[i], 0)
		} else {
			f.store(l, rhs[i], 0, nil)
		}
	}
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// store assigns result i of value to a variable; nil is the zero value.
func (f *flow) store(l, value ast.Expr, i int, err *types.Var) {
	if isBlank(l) {
		if value != nil {
			f.discard(l.Pos(), value, i, err)
		}
		return
	}
	v := f.variable(l)
	if v == nil {
		f.expr(l)
		if value != nil && i == 0 {
			f.keepsData(value, "stored")
		}
		if p, ok := f.locate(l); ok { // h of h.x, which is followed
			f.forget(func(q place) bool { return q.root == p.root || q.last() == p.last() })
		}
		return
	}
	switch {
	case kindOf(v.Type()) != nothing:
		h := holding{is: none}
		if value != nil {
			h = f.valueOf(value, i, err, l.Pos())
		}
		if h.same == v {
			return
		}
		f.assigned(v)
		if r := f.state.root(v); r != v && h.same == r {
			return
		}
		f.overwritten(v, l)
		f.gain(v, h, l.Pos())
	default:
		f.assigned(v)
		delete(f.views, v)
		if value == nil || i > 0 {
			return
		}
		if view := f.dataOf(value); view != nil {
			f.views[v] = view
		}
		f.alias(v, value)
	}
}

// overwritten reports a value that only this variable has and that is
// overwritten.
func (f *flow) overwritten(v *types.Var, l ast.Expr) {
	h, ok := f.state[v]
	if !ok || h.same != nil || h.is != owned || h.pending != nil || h.deferred || h.always || f.isPlace(v) {
		return
	}
	for _, other := range f.state {
		if other.same == v {
			return
		}
	}
	f.complain(l.Pos(), "%s is assigned again before the %s of line %d is released", v.Name(), kindOf(v.Type()).noun(v.Type()), f.line(h.made))
}

// gain sets the value that a variable has from now on.
func (f *flow) gain(v *types.Var, h holding, at token.Pos) {
	f.state.partFrom(v)
	for _, p := range f.params {
		if p == v {
			f.escaped[v] = true
		}
	}
	h.always = h.always || f.state[v].always
	if h.same != nil && f.state[h.same].same != nil { // of v itself, which has just been assigned
		h = holding{is: alive, always: h.always}
	}
	if h.made == token.NoPos {
		h.made = at
	}
	if v.Pos() < f.from && h.is&owned != 0 { // a variable of the enclosing function, which is responsible for it
		h.is = h.is&^owned | alive
	}
	f.state[v] = h
}

// expr follows an expression in which tensors are used.
func (f *flow) expr(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case nil:
	case *ast.Ident:
		f.ident(e)
	case *ast.CallExpr:
		f.call(e)
	case *ast.FuncLit:
		f.later(f.c.touches(e))
	case *ast.UnaryExpr:
		if v := f.variable(e.X); e.Op == token.AND && v != nil {
			f.leave(v)
			return
		}
		f.expr(e.X)
		if e.Op == token.ARROW {
			f.called() // another goroutine has run
		}
	case *ast.BinaryExpr:
		for _, x := range []ast.Expr{e.X, e.Y} {
			compared := e.Op == token.EQL || e.Op == token.NEQ
			if v := f.variable(x); v == nil || !compared || kindOf(v.Type()) == nothing && !f.isNil(e.X) && !f.isNil(e.Y) {
				f.expr(x) // a comparison of handles, or of a variable with nil, uses nothing
			}
		}
	case *ast.SelectorExpr:
		f.selector(e)
	case *ast.CompositeLit:
		f.composite(e)
	case *ast.IndexExpr:
		if v := f.variable(e); v != nil {
			f.use(v, e.Pos(), "use")
			f.expr(e.Index)
			return
		}
		f.expr(e.X)
		f.expr(e.Index)
		f.takeFrom(e)
	case *ast.SliceExpr:
		f.expr(e.X)
	case *ast.StarExpr:
		f.expr(e.X)
	case *ast.TypeAssertExpr:
		f.expr(e.X)
	case *ast.KeyValueExpr:
		f.expr(e.Value)
	}
}

func (f *flow) ident(e *ast.Ident) {
	if t := f.literal(e); t != nil {
		f.later(t)
	}
	v := f.variable(e)
	if v == nil {
		return
	}
	if view := f.views[v]; view != nil {
		f.useData(view, e.Pos(), v.Name())
	}
	if kindOf(v.Type()) != nothing {
		f.use(v, e.Pos(), "use")
	}
	if isError(v.Type()) {
		f.inspected(v)
	}
}

func (f *flow) selector(e *ast.SelectorExpr) {
	if v := f.variable(e.X); v != nil && isView(v.Type()) {
		f.useData(v, e.Pos(), v.Name()+"."+e.Sel.Name)
		return
	}
	if v := f.variable(e); v != nil && kindOf(v.Type()) != nothing {
		f.use(v, e.Pos(), "use")
		return
	}
	if t := f.literal(e); t != nil {
		f.later(t)
	}
	if e.Sel.Name == "Data" && f.makerOf(e.X, 0) != nil {
		f.dropped(e.X, 0)
	}
	f.expr(e.X)
}

// composite follows a composite literal: its elements may be reached through
// it. Operands are borrowed.
func (f *flow) composite(e *ast.CompositeLit) {
	borrows := false
	switch t := f.info.TypeOf(e).Underlying().(type) {
	case *types.Map:
		borrows = named(t.Elem(), tensorPath, "Operand")
	case *types.Slice:
		borrows = named(t.Elem(), tensorPath, "Operand")
	}
	for _, el := range e.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			el = kv.Value
		}
		if v := f.variable(el); borrows && v != nil && kindOf(v.Type()) != nothing {
			f.use(v, el.Pos(), "use")
			continue
		}
		f.handOn(el)
	}
}

// handOn uses a tensor in a way after which this function may not be
// responsible for it.
func (f *flow) handOn(e ast.Expr) {
	if v := f.variable(e); v != nil && kindOf(v.Type()) != nothing {
		f.use(v, e.Pos(), "use")
		f.handOver(v)
		return
	}
	f.expr(e)
}

// inspected stops following values that depend on an error that is tested in
// another way than by a comparison with nil: the code that follows may know
// that the call failed.
func (f *flow) inspected(err *types.Var) {
	for v, h := range f.state {
		if h.pending == err {
			f.leave(v)
		}
	}
}

// use checks a use of a tensor.
func (f *flow) use(v *types.Var, at token.Pos, what string) {
	if kindOf(v.Type()) == ender {
		return // a method that handles the tensor's end itself
	}
	if h, ok := f.get(v); ok && h.is&deadBits != 0 {
		if f.c.flagged[v] && h.is&^deadBits != 0 {
			return
		}
		f.complain(at, "%s of %s after %s on line %d", what, v.Name(), h.how, f.line(h.at))
		return
	}
	if of := f.owner(v); of != nil {
		if h, ok := f.get(of); ok && h.is&deadBits != 0 {
			f.complain(at, "%s of %s after %s of %s on line %d", what, v.Name(), h.how, of.Name(), f.line(h.at))
		}
	}
}

// useData checks a use of a view's data.
func (f *flow) useData(view *types.Var, at token.Pos, name string) {
	if h, ok := f.get(view); ok && h.is&released != 0 {
		f.complain(at, "use of %s after Release of %s on line %d", name, view.Name(), f.line(h.at))
	}
}

// dataOf returns the view whose data e is a part of, nil if it is not.
func (f *flow) dataOf(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if v := f.variable(e.X); v != nil && isView(v.Type()) && e.Sel.Name == "Data" {
			return v
		}
	case *ast.SliceExpr:
		return f.dataOf(e.X)
	case *ast.Ident:
		if v := f.variable(e); v != nil {
			return f.views[v]
		}
	}
	return nil
}

// keepsData reports a slice of a view's data that outlives a deferred Release.
func (f *flow) keepsData(e ast.Expr, how string) {
	if e == nil {
		return
	}
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = u.X
	}
	if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
		for _, el := range lit.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				el = kv.Value
			}
			f.keepsData(el, how)
		}
		return
	}
	if view := f.dataOf(e); view != nil {
		if h, ok := f.get(view); ok && h.deferred {
			f.complain(e.Pos(), "data of %s is %s, but its deferred Release ends it when the function returns", view.Name(), how)
		}
	}
}
