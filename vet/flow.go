package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// flow follows the values of one function along its paths.
type flow struct {
	c       *checker
	info    *types.Info
	graph   *cfg.CFG
	params  []*types.Var
	outside []*types.Var // captured variables, of a function literal
	from    token.Pos    // start of the parameters: earlier variables belong to other functions
	results *types.Tuple
	report  bool
	said    map[token.Pos]bool // positions that were reported

	state  state
	places map[*types.Var]place
	views  map[*types.Var]*types.Var // slices of the data of a view
	gives  []*types.Var              // given up by the present statement
	before map[*types.Var]holding    // their holdings before it
	depth  int                       // number of calls around the present expression

	// results of the analysis of the function
	ends         map[*types.Var]condition // of parameters, at returns without an error
	exits        map[*types.Var]condition // of parameters and captured variables, at all returns
	escaped      map[*types.Var]bool
	returns      int   // those without an error
	ownedResults []int // number of returns with a result i that the caller must release
	passes       int   // the parameter that every return has as its first result; -1: none, -2: no return was seen
	wild         bool  // it has a return that the analysis does not understand
}

func newFlow(c *checker, t *ast.FuncType, sig types.Type, g *cfg.CFG, report bool) *flow {
	f := &flow{
		c: c, info: c.pass.TypesInfo, graph: g, report: report, said: map[token.Pos]bool{}, views: map[*types.Var]*types.Var{},
		places: map[*types.Var]place{}, before: map[*types.Var]holding{}, from: t.Params.Pos(),
	}
	for _, field := range t.Params.List {
		for _, name := range field.Names {
			v, _ := f.info.Defs[name].(*types.Var)
			f.params = append(f.params, v)
		}
		if len(field.Names) == 0 {
			f.params = append(f.params, nil)
		}
	}
	if sig, ok := sig.(*types.Signature); ok {
		f.results = sig.Results()
	}
	f.start()
	return f
}

// start resets the results.
func (f *flow) start() {
	f.ends, f.exits, f.escaped = map[*types.Var]condition{}, map[*types.Var]condition{}, map[*types.Var]bool{}
	f.returns, f.ownedResults, f.passes, f.wild = 0, make([]int, f.results.Len()), -2, false
}

// follows reports whether the type of a parameter is one that can be given up,
// or an error, which can be checked.
func (f *flow) follows(p *types.Var) bool {
	return p != nil && (kindOf(p.Type()) != nothing || isError(p.Type()))
}

func (f *flow) entry() state {
	s := state{}
	for _, p := range f.params {
		switch {
		case !f.follows(p):
		case isError(p.Type()):
			s[p] = holding{is: alive | none}
		default:
			s[p] = holding{is: alive}
		}
	}
	for _, v := range f.outside {
		s[v] = holding{is: alive}
	}
	return s
}

// check runs the flow to its fixed point, and then once more to report.
func (f *flow) check() {
	blocks := reachable(f.graph)
	if len(blocks) == 0 {
		return
	}
	in := map[*cfg.Block]state{blocks[0]: f.entry()}
	work := []*cfg.Block{blocks[0]}
	report := f.report
	f.report = false
	for steps := 0; len(work) > 0 && steps < 50*len(blocks); steps++ {
		b := work[0]
		work = work[1:]
		for i, out := range f.block(b, in[b]) {
			next := b.Succs[i]
			if known, ok := in[next]; !ok {
				in[next] = out
			} else if !known.join(out) {
				continue
			}
			if !slices.Contains(work, next) {
				work = append(work, next)
			}
		}
	}
	f.report = report && len(work) == 0
	f.start()
	for _, b := range blocks {
		if s, ok := in[b]; ok {
			f.block(b, s)
		}
	}
}

// block returns the state on each edge out of b.
func (f *flow) block(b *cfg.Block, in state) []state {
	f.state = in.clone()
	if r, ok := b.Stmt.(*ast.RangeStmt); ok && b.Kind == cfg.KindRangeBody {
		f.rangeOver(r)
	}
	for _, n := range b.Nodes {
		f.node(n)
	}
	out := make([]state, len(b.Succs))
	for i := range out {
		out[i] = f.state.clone()
	}
	if len(b.Succs) == 2 && len(b.Nodes) > 0 {
		if e, ok := b.Nodes[len(b.Nodes)-1].(ast.Expr); ok {
			out[0], out[1] = f.decide(e, f.state)
		}
	}
	for i, next := range b.Succs {
		f.leaveScope(out[i], next)
	}
	return out
}

// decide returns the state where a condition holds and where it does not.
func (f *flow) decide(e ast.Expr, s state) (yes, no state) {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			no, yes = f.decide(e.X, s)
			return yes, no
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND:
			first, no := f.decide(e.X, s)
			yes, notSecond := f.decide(e.Y, first)
			no.join(notSecond)
			return yes, no
		case token.LOR:
			yes, notFirst := f.decide(e.X, s)
			second, no := f.decide(e.Y, notFirst)
			yes.join(second)
			return yes, no
		case token.EQL, token.NEQ:
			return f.compare(e, s)
		}
	case *ast.CallExpr:
		return f.ask(e, s)
	}
	return s.clone(), s.clone()
}

// ask is decide for a call.
func (f *flow) ask(e *ast.CallExpr, s state) (yes, no state) {
	yes, no = s.clone(), s.clone()
	if err := f.isAnError(e); err != nil {
		return s.failed(err), no
	}
	sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok {
		return yes, no
	}
	if fn := f.callee(e); fn != nil && fn.Pkg().Path() == "testing" && fn.Name() == "Failed" {
		yes.disown()
	}
	if v := f.variable(sel.X); v != nil && isTensor(v.Type()) && sel.Sel.Name == "Alive" {
		if h, ok := no[no.root(v)]; ok {
			h.is, h.pending = none, nil // there is nothing to release
			no[no.root(v)] = h
		}
	}
	return yes, no
}

// compare is decide for == and !=.
func (f *flow) compare(e *ast.BinaryExpr, s state) (yes, no state) {
	v, ok := f.nilTest(e)
	if !ok {
		return s.clone(), s.clone()
	}
	old := f.state
	f.state = s
	yes, no = f.isNilOrNot(v)
	f.state = old
	if e.Op == token.NEQ {
		return no, yes
	}
	if isError(v.Type()) {
		for v := range yes {
			if f.c.blank[v] { // the program does not expect success
				delete(yes, v)
			}
		}
	}
	return yes, no
}

// isNilOrNot returns the state if v is nil, and if it is not.
func (f *flow) isNilOrNot(v *types.Var) (isNil, is state) {
	if isError(v.Type()) {
		isNil, is = f.state.succeeded(v), f.state.failed(v)
		if h, ok := f.state[v]; ok { // a parameter
			h.is = none
			isNil[v] = h
			h.is = alive
			is[v] = h
		}
		return isNil, is
	}
	isNil, is = f.state.clone(), f.state.clone()
	h, ok := f.get(v)
	if !ok {
		return isNil, is
	}
	if h.pending != nil && h.before == none && h.is&none == 0 {
		return f.state.failed(h.pending), f.state.succeeded(h.pending)
	}
	r := f.state.root(v)
	there := h
	there.is &^= none
	is[r] = there
	h.is, h.pending = none, nil
	isNil[r] = h
	return isNil, is
}

// isAnError recognises errors.Is(err, x) and errors.As(err, &x), which are true
// only of an error.
func (f *flow) isAnError(call *ast.CallExpr) *types.Var {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 2 || f.isNil(call.Args[1]) {
		return nil
	}
	fn, ok := f.info.ObjectOf(sel.Sel).(*types.Func)
	if !ok || fn.FullName() != "errors.Is" && fn.FullName() != "errors.As" {
		return nil
	}
	if v := f.variable(call.Args[0]); v != nil && isError(v.Type()) {
		return v
	}
	return nil
}

// nilTest recognises comparisons of an error, or of a followed value, with nil.
func (f *flow) nilTest(e *ast.BinaryExpr) (v *types.Var, ok bool) {
	x, y := e.X, e.Y
	if f.isNil(x) {
		x, y = y, x
	}
	v = f.variable(x)
	if v == nil || !f.isNil(y) || !isError(v.Type()) && kindOf(v.Type()) == nothing {
		return nil, false
	}
	return v, true
}

func (f *flow) isNil(e ast.Expr) bool {
	tv, ok := f.info.Types[ast.Unparen(e)]
	return ok && tv.IsNil()
}

func (f *flow) complain(pos token.Pos, format string, args ...any) {
	at := f.c.pass.Fset.Position(pos)
	if f.report && !f.said[pos] && !f.c.quiet[at.Filename][at.Line] {
		f.said[pos] = true
		f.c.pass.Reportf(pos, format, args...)
	}
}

func (f *flow) line(pos token.Pos) int { return f.c.pass.Fset.Position(pos).Line }

// leave stops following the value of a variable: other code may end it or
// assign the variable.
func (f *flow) leave(v *types.Var) {
	if v == nil {
		return
	}
	if of := f.owner(v); of != nil && kindOf(of.Type()) == container {
		delete(f.state, of)
	}
	r := f.state.root(v)
	delete(f.state, r)
	delete(f.state, v)
	f.escaped[r], f.escaped[v] = true, true
}

// handOver makes other code, which can reach it from now on, responsible for
// the value of v.
func (f *flow) handOver(v *types.Var) {
	if of := f.owner(v); of != nil && kindOf(of.Type()) == container {
		delete(f.state, of)
	}
	r := f.state.root(v)
	if h, ok := f.state[r]; ok {
		if h.is&owned != 0 {
			h.is = h.is&^owned | alive
		}
		if h.before&owned != 0 {
			h.before = h.before&^owned | alive
		}
		f.state[r] = h
	}
	f.escaped[r], f.escaped[v] = true, true
}

// ownership returns the results of the analysis.
func (f *flow) ownership(declared map[string]bool) *Ownership {
	o := &Ownership{Passes: max(f.passes+1, 0)}
	for i, n := range f.ownedResults {
		if f.returns > 0 && n == f.returns && !f.wild {
			o.Gives = append(o.Gives, i)
		}
	}
	for i, p := range f.params {
		if !f.follows(p) {
			continue
		}
		end := f.ends[p]
		switch {
		case declared[p.Name()]:
			o.Consumes = append(o.Consumes, i)
		case f.escaped[p]:
		case isError(p.Type()):
			if f.exits[p] != 0 && f.exits[p]&^none == 0 {
				o.Checks = append(o.Checks, i)
			}
		case f.returns == 0:
		case end != 0 && end&^(deadBits|none) == 0 && end&deadBits != 0:
			o.Consumes = append(o.Consumes, i)
		case end&deadBits == 0:
			o.Borrows = append(o.Borrows, i)
		}
	}
	return o
}
