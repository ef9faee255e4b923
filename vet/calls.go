package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

func (f *flow) call(call *ast.CallExpr) {
	f.depth++
	defer func() { f.depth-- }()
	fn := f.callee(call)
	if err := f.isAnError(call); err != nil {
		f.drop(err)
		return
	}
	sel, isSelector := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if isSelector {
		if v := f.variable(sel.X); v != nil && kindOf(v.Type()) != nothing {
			f.method(v, sel.Sel.Name, call)
			f.args(fn, call)
			return
		}
	}
	switch t := f.literal(call.Fun); {
	case t != nil:
		f.args(fn, call)
		f.run(t, call)
		f.called()
		return
	case isSelector && fn != nil:
		if recv := fn.Signature().Recv(); recv != nil && isOurs(fn) && !f.takes(sel.Sel.Name) {
			f.dropped(sel.X, 0) // a method of a value that is in no variable
		}
		if isOurs(fn) && !descriptions[sel.Sel.Name] {
			f.elementMethod(sel)
		}
		f.expr(sel.X)
	default:
		f.expr(call.Fun)
	}
	f.args(fn, call)
	f.failsTest(fn)
	if !f.pure(fn, call) {
		f.called()
	}
}

// takes reports whether a method of that name gives its receiver up.
func (f *flow) takes(name string) bool {
	return name == "Donate" || name == "Reuse" || name == "Release" || name == "Close" || name == "CloseWhenIdle"
}

// elementMethod handles out[name].Release() for an element that is not
// followed.
func (f *flow) elementMethod(sel *ast.SelectorExpr) {
	if e, ok := ast.Unparen(sel.X).(*ast.IndexExpr); ok {
		f.takeFrom(e)
	}
}

// pure reports whether a call cannot change fields and elements of this
// function's variables.
func (f *flow) pure(fn *types.Func, call *ast.CallExpr) bool {
	if tv := f.info.Types[call.Fun]; tv.IsType() {
		return true
	}
	if b, ok := typeutil.Callee(f.info, call).(*types.Builtin); ok {
		return b.Name() != "delete" && b.Name() != "clear" && b.Name() != "copy"
	}
	return fn != nil && (isOurs(fn) || printers[fn.Pkg().Path()] && fn.Name() != "Run")
}

// failsTest stops reporting for a failed test that does not release its
// tensors.
func (f *flow) failsTest(fn *types.Func) {
	if fn != nil && fn.Pkg().Path() == "testing" && (fn.Name() == "Error" || fn.Name() == "Errorf" || fn.Name() == "Fail") {
		f.state.disown()
	}
}

// method follows a method call on the value of a variable.
func (f *flow) method(v *types.Var, name string, call *ast.CallExpr) {
	k := kindOf(v.Type())
	switch {
	case k.endsByMethod(name):
		f.end(v, call.Pos(), name)
	case k == aTensor && (name == "Donate" || name == "Reuse"):
		f.give(v, name, call)
		if f.depth < 2 {
			f.leave(v) // the operand is for a later call
		}
	case name == "Retain" || name == "IntoHandle":
		f.leave(v) // another hold of a buffer
	case name == "Owner":
		f.use(v, call.Pos(), "use")
		f.leave(v) // ends with its owner
	case named(v.Type(), module+"/share", "Owner") && kindOf(f.info.TypeOf(call)) != nothing || f.makesPeer(v, call):
		f.use(v, call.Pos(), "use")
		f.handOver(v) // the peer has it: Peer.Owner
	case !descriptions[name]:
		f.use(v, call.Pos(), "use")
	}
}

// makesPeer reports whether a method of an owner returns a peer or a listener.
func (f *flow) makesPeer(v *types.Var, call *ast.CallExpr) bool {
	results, ok := f.info.TypeOf(call).(*types.Tuple)
	return ok && named(v.Type(), module+"/share", "Owner") && results.Len() > 0 && kindOf(results.At(0).Type()) == closer
}

// give follows Donate and Reuse.
func (f *flow) give(v *types.Var, how string, call *ast.CallExpr) {
	h, ok := f.get(v)
	if !ok {
		return
	}
	f.taken(v)
	f.use(v, call.Pos(), how)
	r := f.state.root(v)
	was := h
	was.is &^= deadBits
	f.before[r] = was
	f.gives = append(f.gives, r)
	h.is, h.at, h.how, h.pending = donated, call.Pos(), how, nil
	f.state[r] = h
}

// taken stops following outputs when one of them is released or given up
// separately.
func (f *flow) taken(v *types.Var) {
	if of := f.owner(v); of != nil && kindOf(of.Type()) == container {
		if h, ok := f.get(of); ok && h.is&deadBits == 0 {
			delete(f.state, of)
		}
	}
}

// end follows a Release or Close.
func (f *flow) end(v *types.Var, at token.Pos, name string) {
	h, ok := f.get(v)
	if !ok {
		return
	}
	k := kindOf(v.Type())
	counts := k == aTensor || k == container || named(v.Type(), module+"/memory", "Buffer")
	if counts && h.is&deadBits != 0 && h.is&^(deadBits|none) == 0 && h.pending == nil {
		f.complain(at, "%s of %s after %s on line %d", name, v.Name(), h.how, f.line(h.at))
	} else if of := f.owner(v); counts && of != nil && kindOf(of.Type()) == container {
		if o, ok := f.state[of]; ok && o.is == released {
			f.complain(at, "%s of %s after %s of %s on line %d", name, v.Name(), o.how, of.Name(), f.line(o.at))
		}
	}
	f.taken(v)
	r := f.state.root(v)
	h.is, h.at, h.how, h.pending = released, at, name, nil
	f.state[r] = h
	if k != container && !named(v.Type(), eagerPath, "Scope") {
		return
	}
	for w, e := range f.state {
		if e.of == r && e.is&alive != 0 {
			e.is, e.at, e.how, e.pending = released, at, name+" of "+v.Name(), nil
			f.state[w] = e
		}
	}
}

// args follows the arguments of a function.
func (f *flow) args(fn *types.Func, call *ast.CallExpr) {
	if fn != nil && fn.Pkg().Path() == tensorPath && (fn.Name() == "Take" || fn.Name() == "Begin") {
		return // they begin an operation; tensors that are given up end with its Commit
	}
	if fn != nil && fn.Pkg().Path() == "testing" && fn.Name() == "Cleanup" && len(call.Args) == 1 {
		if t := f.literal(call.Args[0]); t != nil {
			f.atTheEnd(t, false)
			return
		}
	}
	for i, a := range call.Args {
		f.stays(fn, i, a)
		v := f.variable(a)
		if v == nil || kindOf(v.Type()) == nothing {
			if f.effect(fn, i) == checks {
				if err := f.variable(a); err != nil {
					f.state.settle(err)
					continue
				}
			}
			given := len(f.gives)
			f.argument(fn, i, a)
			f.unsure(fn, i, a, given)
			continue
		}
		switch f.effect(fn, i) {
		case looks:
		case borrows:
			f.use(v, a.Pos(), "use")
		case consumes:
			f.give(v, "a call of "+fn.Name()+", which consumes it,", call)
		default:
			f.use(v, a.Pos(), "use")
			if b, ok := typeutil.Callee(f.info, call).(*types.Builtin); ok {
				if b.Name() == "append" {
					f.handOver(v)
				}
				continue
			}
			f.leave(v)
		}
	}
}

// stays follows the tensors in which a run is told to write its outputs: one
// that the same run is given lives on, as the output.
func (f *flow) stays(fn *types.Func, i int, a ast.Expr) {
	if fn == nil || fn.Pkg().Path() != module || !(fn.Name() == "Into" && i == 1 || fn.Name() == "RunInto" && i == 2) {
		return
	}
	ast.Inspect(a, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v := f.variable(id); v != nil && isTensor(v.Type()) {
				f.stay(v, fn.Signature().Recv() != nil && fn.Name() == "Into")
			}
		}
		return true
	})
}

// stay makes v alive again, if the call that is looked at has given it up. An
// output of a binding may be given up by any of its runs: it is left alone.
func (f *flow) stay(v *types.Var, binding bool) {
	if binding {
		f.leave(v)
		return
	}
	r := f.state.root(v)
	if at := slices.Index(f.gives, r); at >= 0 {
		f.state[r] = f.before[r]
		f.gives = slices.Delete(f.gives, at, at+1)
	}
}

// argument follows an argument that is not a tensor in a variable.
func (f *flow) argument(fn *types.Func, i int, a ast.Expr) {
	if u, ok := ast.Unparen(a).(*ast.UnaryExpr); ok && isOurs(fn) {
		if v := f.variable(u.X); v != nil && isTensor(v.Type()) {
			f.use(v, a.Pos(), "use") // x of AddAssign(&x, y): another tensor, for which the caller is also responsible
			if recv := fn.Signature().Recv(); recv != nil && named(recv.Type(), eagerPath, "Scope") {
				f.leave(v) // or the scope owns it
			}
			return
		}
	}
	if call, ok := ast.Unparen(a).(*ast.CallExpr); ok && isOurs(fn) && f.effect(fn, i) == borrows {
		if t := f.info.TypeOf(call); t != nil && kindOf(t) != nothing && kindOf(t) != closer {
			f.dropped(call, 0)
		}
	}
	f.expr(a)
}

// unsure stops following argument a in a call whose error is passed to a
// function that may expect an error.
func (f *flow) unsure(fn *types.Func, i int, a ast.Expr, given int) {
	if given == len(f.gives) || given > len(f.gives) {
		return
	}
	switch t := f.info.TypeOf(a).(type) {
	case *types.Tuple:
		if i += t.Len() - 1; !isError(t.At(t.Len() - 1).Type()) {
			return
		}
	default:
		if !isError(t) {
			return
		}
	}
	if f.effect(fn, i) == checks {
		return
	}
	for _, v := range f.gives[given:] {
		f.leave(v)
	}
	f.gives = f.gives[:given]
}

type effect int

const (
	unknown effect = iota
	looks
	borrows
	consumes
	checks // it returns only if the error is nil
)

// effect returns the effect of a function on the tensor that is its argument i.
func (f *flow) effect(fn *types.Func, i int) effect {
	if fn == nil {
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
	case o != nil && slices.Contains(o.Checks, i):
		return checks
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
	if i < sig.Params().Len() && named(sig.Params().At(i).Type(), tensorPath, "Operand") {
		return borrows
	}
	return unknown
}

// deferred follows a deferred call: it may end a tensor or view; if its effect
// is not known, its arguments are not followed any more.
func (f *flow) deferred(call *ast.CallExpr) {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if v := f.variable(sel.X); v != nil && kindOf(v.Type()) != nothing && kindOf(v.Type()).endsByMethod(sel.Sel.Name) {
			f.willEnd(v)
			return
		}
	}
	if t := f.literal(call.Fun); t != nil {
		f.atTheEnd(t, true)
		return
	}
	fn := f.callee(call)
	for i, a := range call.Args {
		v := f.variable(a)
		switch {
		case v == nil || kindOf(v.Type()) == nothing:
			f.abandon(a)
		case f.effect(fn, i) == consumes:
			f.willEnd(v)
		case f.effect(fn, i) == unknown:
			f.leave(v)
		}
	}
}

// willEnd records that the value of v is given up when the function returns.
func (f *flow) willEnd(v *types.Var) {
	f.taken(v)
	if h, ok := f.get(v); ok {
		h.deferred = true
		f.set(v, h)
	}
}

// goes follows values that another goroutine receives.
func (f *flow) goes(call *ast.CallExpr) {
	if t := f.literal(call.Fun); t != nil {
		f.later(t)
	} else {
		f.abandon(call.Fun)
	}
	for _, a := range call.Args {
		f.abandon(a)
	}
}

// abandon stops following every variable that code which runs independently can
// reach.
func (f *flow) abandon(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v := f.variable(id); v != nil && kindOf(v.Type()) != nothing {
				f.leave(v)
			} else if t := f.literal(id); t != nil {
				f.later(t)
			}
		}
		return true
	})
}
