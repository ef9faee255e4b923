package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

func (f *flow) callee(call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(f.info, call).(*types.Func)
	if fn == nil || fn.Pkg() == nil {
		return nil
	}
	return fn
}

// makerOf returns the function that made result i of an expression, if the
// caller must release that result.
func (f *flow) makerOf(e ast.Expr, i int) *types.Func {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	fn := f.callee(call)
	if fn == nil {
		return nil
	}
	if i < fn.Signature().Results().Len() && isOurs(fn) {
		if gives(fn, i) {
			return fn
		}
		return nil
	}
	o := f.c.known(fn)
	switch {
	case o == nil:
	case slices.Contains(o.Gives, i):
		return fn
	case o.Passes > 0 && i == 0: // must(f())
		if p := o.Passes - 1; p < len(call.Args) {
			return f.makerOf(call.Args[p], 0)
		}
		if len(call.Args) == 1 {
			return f.makerOf(call.Args[0], o.Passes-1)
		}
	}
	return nil
}

// valueOf returns the holding of a variable that is assigned result i of value.
func (f *flow) valueOf(value ast.Expr, i int, err *types.Var, at token.Pos) holding {
	if f.isNil(value) {
		return holding{is: none}
	}
	if from := f.variable(value); from != nil {
		if of := f.owner(from); of != nil && f.isPlace(from) {
			if _, ok := f.state[from]; !ok {
				f.state[from] = holding{is: alive, of: of}
			}
		}
		h, ok := f.get(from)
		if !ok {
			return holding{is: alive}
		}
		r := f.state.root(from)
		f.state[r] = h
		return holding{is: h.is, same: r}
	}
	if f.makerOf(value, i) != nil {
		h := holding{is: owned, made: at}
		if err != nil {
			h.pending, h.before = err, none
		}
		return h
	}
	h := holding{is: alive}
	switch e := ast.Unparen(value).(type) {
	case *ast.CallExpr:
		h.of = f.scopeOf(e)
	case *ast.IndexExpr:
		f.takeFrom(e)
	}
	return h
}

// scopeOf returns the variable of the scope, or of the outputs, that owns the
// result of a call, nil if there is none.
func (f *flow) scopeOf(call *ast.CallExpr) *types.Var {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	v := f.variable(sel.X)
	if v == nil || f.isPlace(v) {
		return nil
	}
	scoped := named(v.Type(), eagerPath, "Scope") && sel.Sel.Name != "Keep"
	if !scoped && !(named(v.Type(), module, "Outputs") && sel.Sel.Name == "Get") {
		return nil
	}
	if _, ok := f.state[v]; !ok {
		return nil
	}
	return f.state.root(v)
}

// takeFrom handles an element of outputs that is not followed.
func (f *flow) takeFrom(e *ast.IndexExpr) {
	if v := f.variable(e.X); v != nil && kindOf(v.Type()) == container {
		f.leave(v)
	}
}

// dropped reports a value that the caller must release and that is in no
// variable.
func (f *flow) dropped(e ast.Expr, i int) {
	if fn := f.makerOf(e, i); fn != nil {
		f.complain(e.Pos(), "%s is never released", f.describe(e, i, fn))
	}
}

// describe names result i of a call.
func (f *flow) describe(e ast.Expr, i int, fn *types.Func) string {
	t := f.info.TypeOf(e)
	if tuple, ok := t.(*types.Tuple); ok && i < tuple.Len() {
		t = tuple.At(i).Type()
	}
	return "the " + kindOf(t).noun(t) + " that " + fn.Name() + " returns"
}

// discard follows result i of a call that is assigned to the blank identifier
// beside an error.
func (f *flow) discard(at token.Pos, value ast.Expr, i int, err *types.Var) {
	fn := f.makerOf(value, i)
	if fn == nil {
		return
	}
	if err == nil {
		f.dropped(value, i)
		return
	}
	v := f.c.blanks[at]
	if v == nil {
		v = types.NewVar(at, f.c.pass.Pkg, f.describe(value, i, fn), fn.Signature().Results().At(min(i, fn.Signature().Results().Len()-1)).Type())
		f.c.blanks[at] = v
		f.c.blank[v] = true
	}
	f.state[v] = holding{is: owned, made: value.Pos(), pending: err, before: none}
}

// drop forgets a value that was discarded beside an error that the program
// expects.
func (f *flow) drop(err *types.Var) {
	for v, h := range f.state {
		if f.c.blank[v] && h.pending == err {
			delete(f.state, v)
		}
	}
}
