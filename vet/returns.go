package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// ret follows a return.
func (f *flow) ret(r *ast.ReturnStmt) {
	ownedResults := make([]bool, f.results.Len())
	for i := range ownedResults {
		switch {
		case len(r.Results) == len(ownedResults):
			ownedResults[i] = f.isOwnedResult(r.Results[i], 0)
		case len(r.Results) == 1:
			ownedResults[i] = f.makerOf(r.Results[0], i) != nil
		}
	}
	f.pass(r)
	for _, e := range r.Results {
		f.returned(e)
	}
	if len(r.Results) == 0 && f.results != nil {
		for v := range f.results.Variables() { // a named result
			delete(f.state, f.state.root(v))
			delete(f.state, v)
		}
	}
	for v, h := range f.state {
		if f.leaks(v, h) {
			f.complain(h.made, "%s is not released on the path to the return on line %d", v.Name(), f.line(r.Pos()))
		}
	}
	f.learn(r, ownedResults)
}

// leaks reports whether the value of v is lost when v goes out of scope.
func (f *flow) leaks(v *types.Var, h holding) bool {
	return h.same == nil && h.is&owned != 0 && !h.deferred && !h.always && !f.isPlace(v) && !f.c.flagged[v] && (h.pending == nil || !f.c.blank[v])
}

// leaveScope ends the variables that go out of scope in a block.
func (f *flow) leaveScope(s state, next *cfg.Block) {
	if next.Stmt == nil {
		return
	}
	var from, to token.Pos
	switch next.Kind {
	case cfg.KindForLoop, cfg.KindForPost, cfg.KindForBody:
		body := next.Stmt.(*ast.ForStmt).Body
		from, to = body.Pos(), body.End()
	case cfg.KindRangeLoop, cfg.KindRangeBody:
		body := next.Stmt.(*ast.RangeStmt).Body
		from, to = body.Pos(), body.End()
	case cfg.KindForDone, cfg.KindRangeDone, cfg.KindIfDone, cfg.KindSwitchDone, cfg.KindSelectDone:
		from, to = next.Stmt.Pos(), next.Stmt.End()
	default:
		return
	}
	for v := range s {
		if v.Pos() < from || v.Pos() >= to || f.isPlace(v) {
			continue
		}
		s.partFrom(v)
		if h := s[v]; f.leaks(v, h) {
			f.complain(h.made, "%s is not released on the path to the end of its block on line %d", v.Name(), f.line(to))
		}
		delete(s, v)
	}
}

// learn records the function's behaviour that the return shows.
func (f *flow) learn(r *ast.ReturnStmt, ownedResults []bool) {
	for _, list := range [][]*types.Var{f.params, f.outside} {
		for _, p := range list {
			if p == nil {
				continue
			}
			h, ok := f.get(p)
			if !ok {
				f.escaped[p] = true
			}
			f.exits[p] |= h.atTheEnd()
		}
	}
	if f.isErrorReturn(r) {
		return
	}
	f.returns++
	for i, gift := range ownedResults {
		if gift {
			f.ownedResults[i]++
		}
	}
	for _, p := range f.params {
		if p != nil {
			h, _ := f.get(p)
			f.ends[p] |= h.atTheEnd()
		}
	}
	f.wild = f.wild || len(r.Results) == 0 && f.results != nil && f.results.Len() > 0
}

// pass checks whether the first result is an unchanged parameter.
func (f *flow) pass(r *ast.ReturnStmt) {
	is := -1
	if len(r.Results) > 0 {
		if id, ok := ast.Unparen(r.Results[0]).(*ast.Ident); ok {
			if v, ok := f.info.ObjectOf(id).(*types.Var); ok && f.c.assigns[v] == 1 {
				is = slices.Index(f.params, v)
			}
		}
	}
	if f.passes == -2 {
		f.passes = is
	} else if f.passes != is {
		f.passes = -1
	}
}

// returned follows one result.
func (f *flow) returned(e ast.Expr) {
	v := f.variable(e)
	if v == nil || kindOf(v.Type()) == nothing {
		if v == nil || !isError(v.Type()) {
			f.expr(e)
		}
		if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
			f.keptBy(f.scopeOf(call))
		}
		f.keepsData(e, "returned")
		return
	}
	f.use(v, e.Pos(), "use")
	h, ok := f.get(v)
	switch of := f.owner(v); {
	case ok && h.deferred && h.is&deadBits == 0 && h.is != none:
		f.complain(e.Pos(), "%s is returned, but its deferred %s ends it when the function returns", v.Name(), endOf(v.Type()))
	case of != nil && h.is&deadBits == 0:
		if o, ok := f.get(of); ok && o.deferred {
			f.complain(e.Pos(), "%s is returned, but the deferred %s of %s ends it when the function returns", v.Name(), endOf(of.Type()), of.Name())
		}
		f.keptBy(of)
	}
	r := f.state.root(v)
	if slices.Contains(f.params, r) || slices.Contains(f.outside, r) || f.isPlace(r) {
		f.leave(v)
		return
	}
	f.taken(v)
	delete(f.state, r) // the caller is responsible now
	delete(f.state, v)
}

// keptBy stops following outputs of which one is returned: the caller has it
// now.
func (f *flow) keptBy(of *types.Var) {
	if of != nil && kindOf(of.Type()) == container {
		f.leave(of)
	}
}

func endOf(t types.Type) string {
	if kindOf(t) == closer && !named(t, module+"/memory", "Buffer") {
		return "Close"
	}
	return "Release"
}

// isOwnedResult reports whether the caller of this function must release e.
func (f *flow) isOwnedResult(e ast.Expr, i int) bool {
	if v := f.variable(e); v != nil {
		h, ok := f.get(v)
		return ok && h.is&owned != 0 && !h.deferred && !h.always
	}
	return f.makerOf(e, i) != nil
}

// isErrorReturn reports whether the last result is an error that is written as
// something else than nil.
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
	// A call may return nil, except one that makes an error, and except beside
	// a result that is nil.
	fn := f.callee(call)
	return n > 1 && f.isNil(r.Results[0]) || fn != nil && (fn.FullName() == "fmt.Errorf" || fn.FullName() == "errors.New")
}
