package vet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

// descriptions are the methods of a tensor that say something also when it is dead.
var descriptions = map[string]bool{
	"DType": true, "Shape": true, "Layout": true, "NumElements": true, "NumBytes": true, "String": true, "Alive": true, "Holders": true,
	"IsExclusive": true, "IsDonatable": true, "WhyNotWritable": true, "WhyNotDonatable": true, "Tensor": true, "Semantics": true,
}

// printers are packages whose functions only look at their arguments.
var printers = map[string]bool{"fmt": true, "log": true, "log/slog": true, "testing": true, "errors": true}

func (f *flow) call(call *ast.CallExpr) {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if v := f.variable(sel.X); v != nil && f.method(v, sel.Sel.Name, call) {
			f.args(call)
			return
		}
	}
	if lit, ok := ast.Unparen(call.Fun).(*ast.FuncLit); ok {
		f.abandon(lit)
	} else {
		f.expr(call.Fun)
	}
	f.args(call)
}

// method follows a call of a method of a tensor or view in a variable. It reports false for other variables.
func (f *flow) method(v *types.Var, name string, call *ast.CallExpr) bool {
	switch {
	case isTensor(v.Type()):
		switch {
		case name == "Donate" || name == "Reuse":
			f.give(v, name, call)
		case name == "Release":
			f.release(v, call)
		case !descriptions[name]:
			f.use(v, call.Pos())
		}
		return true
	case isView(v.Type()):
		if name == "Release" {
			if h, ok := f.state[v]; ok {
				h.is, h.at = released, call.Pos()
				f.state[v] = h
			}
		}
		return true
	}
	return false
}

// give follows a donation or reuse.
func (f *flow) give(v *types.Var, how string, call *ast.CallExpr) {
	h, ok := f.state[v]
	if !ok {
		return
	}
	if h.is&deadBits != 0 {
		f.complain(call.Pos(), "%s of %s after %s on line %d", how, v.Name(), h.how, f.line(h.at))
	}
	f.before[v] = h.is &^ deadBits
	f.gives = append(f.gives, v)
	h.is, h.at, h.how, h.pending = donated, call.Pos(), how, nil
	f.state[v] = h
}

func (f *flow) release(v *types.Var, call *ast.CallExpr) {
	h, ok := f.state[v]
	if !ok {
		return
	}
	if h.is != 0 && h.is&^deadBits == 0 && h.pending == nil {
		f.complain(call.Pos(), "Release of %s after %s on line %d", v.Name(), h.how, f.line(h.at))
	}
	h.is, h.at, h.how, h.pending = released, call.Pos(), "Release", nil
	f.state[v] = h
}

// args follows what is passed to a function.
func (f *flow) args(call *ast.CallExpr) {
	fn, _ := typeutil.Callee(f.info, call).(*types.Func)
	if fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == tensorPath && (fn.Name() == "Take" || fn.Name() == "Begin") {
		return // they begin an operation; what is given up ends with its Commit
	}
	for i, a := range call.Args {
		v := f.variable(a)
		if v == nil || !isTensor(v.Type()) {
			f.argument(fn, a)
			continue
		}
		switch f.effect(fn, i) {
		case looks:
		case borrows:
			f.use(v, a.Pos())
		case consumes:
			f.give(v, "a call of "+fn.Name()+", which consumes it,", call)
		default:
			f.use(v, a.Pos())
			f.leave(v)
		}
	}
}

// argument follows an argument that is not a tensor in a variable.
func (f *flow) argument(fn *types.Func, a ast.Expr) {
	if u, ok := ast.Unparen(a).(*ast.UnaryExpr); ok && fn != nil && fn.Pkg() != nil && isOurs(fn) {
		if v := f.variable(u.X); v != nil && isTensor(v.Type()) {
			f.use(v, a.Pos()) // x of AddAssign(&x, y): another tensor that is as much the caller's
			return
		}
	}
	f.expr(a)
}

type effect int

const (
	unknown effect = iota
	looks
	borrows
	consumes
)

// effect returns what a function does with the tensor that is its argument i.
func (f *flow) effect(fn *types.Func, i int) effect {
	if fn == nil || fn.Pkg() == nil {
		return unknown
	}
	if printers[fn.Pkg().Path()] {
		return looks
	}
	sig := fn.Signature()
	if sig.Variadic() && i >= sig.Params().Len()-1 {
		i = sig.Params().Len() - 1
	}
	switch o := f.c.known(fn); {
	case o != nil && slices.Contains(o.Consumes, i):
		return consumes
	case o != nil && slices.Contains(o.Borrows, i):
		return borrows
	case fn.Pkg() == f.c.pass.Pkg:
		return unknown
	}
	if recv := sig.Recv(); recv != nil {
		takes := named(recv.Type(), eagerPath, "Scope") && (fn.Name() == "Adopt" || fn.Name() == "Keep")
		if takes || named(recv.Type(), eagerPath, "Builder") {
			return unknown
		}
	}
	if isOurs(fn) {
		return borrows
	}
	if t := sig.Params().At(i).Type(); named(t, tensorPath, "Operand") {
		return borrows
	}
	return unknown
}

// deferred follows a deferred call: a Release of a tensor or view sees to it, everything else that it can reach is left alone.
func (f *flow) deferred(call *ast.CallExpr) {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && sel.Sel.Name == "Release" {
		if v := f.variable(sel.X); v != nil {
			if h, ok := f.state[v]; ok {
				h.deferred = true
				f.state[v] = h
			}
			return
		}
	}
	f.abandon(call)
}
