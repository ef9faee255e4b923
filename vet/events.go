package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
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
		f.abandon(n.Call)
	case *ast.ExprStmt:
		f.expr(n.X)
	case *ast.SendStmt:
		f.expr(n.Chan)
		f.handOn(n.Value)
	case *ast.RangeStmt:
		// Its parts stand in the graph on their own.
	case ast.Expr:
		f.expr(n)
	case *ast.IncDecStmt:
		f.expr(n.X)
	}
}

// assign follows an assignment or a declaration with values.
func (f *flow) assign(lhs, rhs []ast.Expr) {
	for i, r := range rhs {
		if v := f.variable(r); v != nil && isTensor(v.Type()) {
			f.use(v, r.Pos())
			if len(lhs) == len(rhs) && f.variable(lhs[i]) == nil && !isBlank(lhs[i]) {
				f.leave(v) // into a field, an element, a global
			}
			continue
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
			h.pending, h.before = err, f.before[v]
			f.state[v] = h
		}
	}
	for i, l := range lhs {
		var value ast.Expr
		if len(rhs) == len(lhs) {
			value = rhs[i]
		} else if len(rhs) == 1 && i == 0 {
			value = rhs[0]
		}
		f.store(l, value, err)
	}
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// store gives a variable its new value.
func (f *flow) store(l, value ast.Expr, err *types.Var) {
	v := f.variable(l)
	if v == nil {
		if !isBlank(l) {
			f.expr(l)
			f.keepsData(value, "stored")
		}
		return
	}
	switch {
	case isTensor(v.Type()):
		if h, ok := f.state[v]; ok && h.is == owned && h.pending == nil && !h.deferred {
			f.complain(l.Pos(), "%s is assigned again before the tensor of line %d is released", v.Name(), f.line(h.made))
		}
		f.state[v] = f.valueOf(value, err, l.Pos())
	case isView(v.Type()):
		f.state[v] = holding{is: alive}
	default:
		delete(f.views, v)
		if view := f.dataOf(value); view != nil {
			f.views[v] = view
		}
	}
}

// valueOf is what a variable holds that is assigned value.
func (f *flow) valueOf(value ast.Expr, err *types.Var, at token.Pos) holding {
	if value == nil {
		return holding{is: alive}
	}
	if f.isNil(value) {
		return holding{is: none}
	}
	if from := f.variable(value); from != nil {
		h, ok := f.state[from]
		if !ok {
			return holding{is: alive}
		}
		moved := h
		if h.is&owned != 0 {
			h.is = h.is&^owned | alive // the new name sees to it
			f.state[from] = h
		}
		return moved
	}
	call, ok := ast.Unparen(value).(*ast.CallExpr)
	if !ok || !f.isGift(call) {
		return holding{is: alive}
	}
	h := holding{is: owned, made: at}
	if err != nil {
		h.pending, h.before = err, none
	}
	return h
}

// isGift reports whether the first result of a call is a tensor that the caller has to see to.
func (f *flow) isGift(call *ast.CallExpr) bool {
	fn, ok := typeutil.Callee(f.info, call).(*types.Func)
	if !ok || fn.Pkg() == nil {
		return false
	}
	sig := fn.Signature()
	if sig.Results().Len() == 0 || !isTensor(sig.Results().At(0).Type()) {
		return false
	}
	if recv := sig.Recv(); recv != nil && named(recv.Type(), eagerPath, "Scope") {
		return fn.Name() == "Keep"
	}
	if sig.Params().Len() > 0 && named(sig.Params().At(0).Type(), eagerPath, "Scope") {
		return false // it computes in the scope
	}
	if isOurs(fn) {
		taken := sig.Recv() != nil && named(sig.Recv().Type(), tensorPath, "Taken")
		return !taken && fn.Name() != "Tensor"
	}
	o := f.c.known(fn)
	return o != nil && o.Gives
}

// ours are the packages that keep the rules: their *Tensor and Operand parameters are borrowed, the tensors they return are the
// caller's.
var ours = map[string]bool{
	module: true, tensorPath: true, tensorPath + "/npy": true, tensorPath + "/safetensors": true, eagerPath: true,
	module + "/dlpack": true, module + "/share": true, module + "/cuda": true,
}

func isOurs(fn *types.Func) bool { return ours[fn.Pkg().Path()] }

// expr follows an expression in which tensors are used.
func (f *flow) expr(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case nil:
	case *ast.Ident:
		if v := f.variable(e); v != nil {
			if view := f.views[v]; view != nil {
				f.useData(view, e.Pos(), v.Name())
			}
			if isTensor(v.Type()) {
				f.use(v, e.Pos())
			}
			if isError(v.Type()) {
				f.inspected(v)
			}
		}
	case *ast.CallExpr:
		f.call(e)
	case *ast.FuncLit:
		f.abandon(e)
	case *ast.UnaryExpr:
		if v := f.variable(e.X); e.Op == token.AND && v != nil {
			f.leave(v)
			return
		}
		f.expr(e.X)
	case *ast.BinaryExpr:
		if f.isNil(e.X) || f.isNil(e.Y) {
			return // a comparison uses nothing
		}
		f.expr(e.X)
		f.expr(e.Y)
	case *ast.SelectorExpr:
		if v := f.variable(e.X); v != nil && isView(v.Type()) {
			f.useData(v, e.Pos(), v.Name()+"."+e.Sel.Name)
			return
		}
		f.expr(e.X)
	case *ast.CompositeLit:
		for _, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				el = kv.Value
			}
			f.handOn(el)
			f.keepsData(el, "stored")
		}
	case *ast.IndexExpr:
		f.expr(e.X)
		f.expr(e.Index)
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

// handOn uses a tensor in a way after which this function does not know who sees to it.
func (f *flow) handOn(e ast.Expr) {
	if v := f.variable(e); v != nil && isTensor(v.Type()) {
		f.use(v, e.Pos())
		f.leave(v)
		return
	}
	f.expr(e)
}

// abandon leaves every variable alone that code with a life of its own can reach.
func (f *flow) abandon(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			f.leave(f.variable(id))
		}
		return true
	})
}

// inspected leaves alone what hangs on an error that is looked at in another way than by a comparison with nil: the code that
// follows may know that the call failed.
func (f *flow) inspected(err *types.Var) {
	for v, h := range f.state {
		if h.pending == err {
			f.leave(v)
		}
	}
}

// use checks a use of a tensor.
func (f *flow) use(v *types.Var, at token.Pos) {
	if h, ok := f.state[v]; ok && h.is&deadBits != 0 {
		f.complain(at, "use of %s after %s on line %d", v.Name(), h.how, f.line(h.at))
	}
}

// useData checks a use of a view's data.
func (f *flow) useData(view *types.Var, at token.Pos, name string) {
	if h, ok := f.state[view]; ok && h.is&released != 0 {
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

// keepsData complains about a slice of a view's data that outlives a deferred Release.
func (f *flow) keepsData(e ast.Expr, how string) {
	if e == nil {
		return
	}
	if view := f.dataOf(e); view != nil && f.state[view].deferred {
		f.complain(e.Pos(), "data of %s is %s, but its deferred Release ends it when the function returns", view.Name(), how)
	}
}

// ret follows a return.
func (f *flow) ret(r *ast.ReturnStmt) {
	gift := len(r.Results) > 0 && f.isGiftExpr(r.Results[0])
	for _, e := range r.Results {
		if v := f.variable(e); v != nil && isTensor(v.Type()) {
			f.use(v, e.Pos())
			if !slices.Contains(f.params, v) {
				delete(f.state, v) // the caller's now
			} else {
				f.leave(v)
			}
			continue
		}
		if v := f.variable(e); v == nil || !isError(v.Type()) {
			f.expr(e)
		}
		f.keepsData(e, "returned")
	}
	for v, h := range f.state {
		if isTensor(v.Type()) && h.is&owned != 0 && h.pending == nil && !h.deferred {
			f.complain(h.made, "%s is not released on the path to the return on line %d", v.Name(), f.line(r.Pos()))
		}
	}
	if f.isErrorReturn(r) {
		return
	}
	f.returns++
	if gift {
		f.gifts++
	}
	for _, p := range f.params {
		if p != nil {
			f.ends[p] |= f.state[p].is
		}
	}
	f.wild = f.wild || len(r.Results) == 0 && f.results != nil && f.results.Len() > 0
}

func (f *flow) isGiftExpr(e ast.Expr) bool {
	if v := f.variable(e); v != nil {
		return f.state[v].is&owned != 0
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && f.isGift(call)
}

// isErrorReturn reports whether the last result is an error that is written down as something else than nil.
func (f *flow) isErrorReturn(r *ast.ReturnStmt) bool {
	n := len(r.Results)
	if n == 0 || f.results == nil || n != f.results.Len() {
		return false
	}
	last := r.Results[n-1]
	if !isError(f.results.At(n-1).Type()) || f.isNil(last) {
		return false
	}
	call, isCall := ast.Unparen(last).(*ast.CallExpr)
	if !isCall {
		return true
	}
	// A call may give nil: one that makes an error does not, nor one beside a result that is nil.
	fn, ok := typeutil.Callee(f.info, call).(*types.Func)
	return n > 1 && f.isNil(r.Results[0]) || ok && (fn.FullName() == "fmt.Errorf" || fn.FullName() == "errors.New")
}
