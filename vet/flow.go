package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// flow follows the tensors of one function along its paths.
type flow struct {
	c       *checker
	info    *types.Info
	graph   *cfg.CFG
	params  []*types.Var
	results *types.Tuple
	report  bool
	said    map[token.Pos]bool // places that were reported

	state  state
	views  map[*types.Var]*types.Var // slices of the data of a view
	gives  []*types.Var              // given up by the statement that is looked at
	before map[*types.Var]condition  // what those were

	// what is learned of the function
	ends    map[*types.Var]condition // of parameters, at returns without an error
	escaped map[*types.Var]bool
	returns int  // those without an error
	gifts   int  // those of them whose first result is a tensor of the caller's
	wild    bool // a return that is not understood
}

func newFlow(c *checker, t *ast.FuncType, sig types.Type, g *cfg.CFG, report bool) *flow {
	f := &flow{
		c: c, info: c.pass.TypesInfo, graph: g, report: report, said: map[token.Pos]bool{}, views: map[*types.Var]*types.Var{},
		ends: map[*types.Var]condition{}, escaped: map[*types.Var]bool{}, before: map[*types.Var]condition{},
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
	return f
}

// check runs the flow to its fixed point, and then once more to report.
func (f *flow) check() {
	blocks := reachable(f.graph)
	if len(blocks) == 0 {
		return
	}
	entry := state{}
	for _, p := range f.params {
		if p != nil && isTensor(p.Type()) {
			entry[p] = holding{is: alive}
		}
	}
	in := map[*cfg.Block]state{blocks[0]: entry}
	work := []*cfg.Block{blocks[0]}
	quiet := f.report
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
	f.report = quiet
	f.ends, f.escaped, f.returns, f.gifts, f.wild = map[*types.Var]condition{}, map[*types.Var]bool{}, 0, 0, false
	for _, b := range blocks {
		if s, ok := in[b]; ok {
			f.block(b, s)
		}
	}
}

// block returns the state on each way out of b.
func (f *flow) block(b *cfg.Block, in state) []state {
	f.state = in.clone()
	for _, n := range b.Nodes {
		f.node(n)
	}
	out := make([]state, len(b.Succs))
	for i := range out {
		out[i] = f.state.clone()
	}
	if len(b.Succs) == 2 && len(b.Nodes) > 0 {
		if err, equal, ok := f.errorTest(b.Nodes[len(b.Nodes)-1]); ok {
			good, bad := 1, 0
			if equal {
				good, bad = 0, 1
			}
			out[good], out[bad] = f.state.succeeded(err), f.state.failed(err)
		}
	}
	return out
}

// errorTest recognises err != nil and err == nil.
func (f *flow) errorTest(n ast.Node) (err *types.Var, equal, ok bool) {
	e, isBinary := n.(*ast.BinaryExpr)
	if !isBinary || e.Op != token.EQL && e.Op != token.NEQ {
		return nil, false, false
	}
	x, y := e.X, e.Y
	if f.isNil(x) {
		x, y = y, x
	}
	v := f.variable(x)
	if v == nil || !f.isNil(y) || !isError(v.Type()) {
		return nil, false, false
	}
	return v, e.Op == token.EQL, true
}

func (f *flow) isNil(e ast.Expr) bool {
	tv, ok := f.info.Types[ast.Unparen(e)]
	return ok && tv.IsNil()
}

// variable returns the local variable that e names, nil for anything else.
func (f *flow) variable(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := f.info.ObjectOf(id).(*types.Var)
	if !ok || v.IsField() || v.Parent() == nil || v.Parent() == v.Pkg().Scope() {
		return nil
	}
	return v
}

func (f *flow) complain(pos token.Pos, format string, args ...any) {
	at := f.c.pass.Fset.Position(pos)
	if f.report && !f.said[pos] && !f.c.quiet[at.Filename][at.Line] {
		f.said[pos] = true
		f.c.pass.Reportf(pos, format, args...)
	}
}

func (f *flow) line(pos token.Pos) int { return f.c.pass.Fset.Position(pos).Line }

// leave stops following a variable.
func (f *flow) leave(v *types.Var) {
	if v != nil {
		delete(f.state, v)
		f.escaped[v] = true
	}
}

// ownership is what was learned.
func (f *flow) ownership(declared map[string]bool) *Ownership {
	o := &Ownership{Gives: f.returns > 0 && f.gifts == f.returns && !f.wild}
	for i, p := range f.params {
		if p == nil || !isTensor(p.Type()) {
			continue
		}
		end := f.ends[p]
		switch {
		case declared[p.Name()]:
			o.Consumes = append(o.Consumes, i)
		case f.escaped[p] || f.returns == 0:
		case end != 0 && end&^deadBits == 0:
			o.Consumes = append(o.Consumes, i)
		case end&deadBits == 0:
			o.Borrows = append(o.Borrows, i)
		}
	}
	return o
}
