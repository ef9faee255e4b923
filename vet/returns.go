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
	gifts := make([]bool, f.results.Len())
	for i := range gifts {
		switch {
		case len(r.Results) == len(gifts):
			gifts[i] = f.isGift(r.Results[i], 0)
		case len(r.Results) == 1:
			gifts[i] = f.giver(r.Results[0], i) != nil
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
	f.learn(r, gifts)
}

// leaks reports whether what v has is lost when nobody can reach v any more.
func (f *flow) leaks(v *types.Var, h holding) bool {
	return h.same == nil && h.is&owned != 0 && !h.deferred && !h.always && !f.isPlace(v) && !f.c.flagged[v] && (h.pending == nil || !f.c.blank[v])
}

// leaveScope ends the variables that cannot be reached in a block any more.
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

// learn keeps what the return says about the function.
func (f *flow) learn(r *ast.ReturnStmt, gifts []bool) {
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
	for i, gift := range gifts {
		if gift {
			f.gifts[i]++
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

// pass looks at whether the first result is a parameter as it came.
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
	delete(f.state, r) // the caller's now
	delete(f.state, v)
}

// keptBy leaves alone outputs of which one is returned: the caller has it now.
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

// isGift reports whether e is something that the caller of this function has to see to.
func (f *flow) isGift(e ast.Expr, i int) bool {
	if v := f.variable(e); v != nil {
		h, ok := f.get(v)
		return ok && h.is&owned != 0 && !h.deferred && !h.always
	}
	return f.giver(e, i) != nil
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
	fn := f.callee(call)
	return n > 1 && f.isNil(r.Results[0]) || fn != nil && (fn.FullName() == "fmt.Errorf" || fn.FullName() == "errors.New")
}
