package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// Analyzer reports mistakes in the ownership of tensors.
var Analyzer = &analysis.Analyzer{
	Name:      "tenure",
	Doc:       "report tensors that are used after they were given up, released twice, or never released",
	URL:       "https://pkg.go.dev/github.com/tenure-go/tenure/vet",
	Requires:  []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
	FactTypes: []analysis.Fact{new(Ownership)},
	Run:       run,
}

// Ownership is the effect of a function on the ownership of its parameters and
// results.
type Ownership struct {
	Consumes []int // parameters that are dead after a call without an error
	Borrows  []int // parameters that the function neither gives up nor stores
	Checks   []int // error parameters that are nil whenever it returns
	Gives    []int // results that the caller must release
	Passes   int   // one more than the index of the parameter that is always its first result, 0 for none
}

// AFact marks the type as a fact.
func (*Ownership) AFact() {}

// String lists the effects.
func (o *Ownership) String() string {
	var parts []string
	if len(o.Consumes) > 0 {
		parts = append(parts, "consumes "+numbers(o.Consumes))
	}
	if len(o.Borrows) > 0 {
		parts = append(parts, "borrows "+numbers(o.Borrows))
	}
	if len(o.Checks) > 0 {
		parts = append(parts, "checks "+numbers(o.Checks))
	}
	if o.Passes > 0 {
		parts = append(parts, "passes "+strconv.Itoa(o.Passes-1))
	}
	if len(o.Gives) > 0 {
		parts = append(parts, "gives "+numbers(o.Gives))
	}
	return strings.Join(parts, ", ")
}

func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

const (
	module     = "github.com/tenure-go/tenure"
	tensorPath = module + "/tensor"
	eagerPath  = module + "/eager"
)

// checker is the analysis of one package.
type checker struct {
	pass  *analysis.Pass
	flows *ctrlflow.CFGs
	facts map[*types.Func]*Ownership // of the functions of this package
	quiet map[string]map[int]bool    // lines with //tenure:ignore, by file

	assigns  map[*types.Var]int          // number of assignments to a variable, two if its address is taken
	bound    map[*types.Var]ast.Expr     // functions that are assigned to variables
	ranges   map[ast.Node]*ast.RangeStmt // range statements by the expression that they range over
	literals map[*ast.FuncLit]*touches
	blanks   map[token.Pos]*types.Var // stand for results that are assigned to the blank identifier
	blank    map[*types.Var]bool      // the variables in blanks
	flagged  map[*types.Var]bool      // given up under a flag that is set or tested in several places
}

// ignored collects the lines whose mistakes are not reported.
func (c *checker) ignored() {
	c.quiet = map[string]map[int]bool{}
	for _, file := range c.pass.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if !strings.HasPrefix(comment.Text, "//tenure:ignore") {
					continue
				}
				at := c.pass.Fset.Position(comment.Pos())
				if c.quiet[at.Filename] == nil {
					c.quiet[at.Filename] = map[int]bool{}
				}
				c.quiet[at.Filename][at.Line] = true
			}
		}
	}
}

func run(pass *analysis.Pass) (any, error) {
	if !reachesTensor(pass.Pkg) {
		return nil, nil
	}
	c := &checker{
		pass: pass, flows: pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs), facts: map[*types.Func]*Ownership{},
		blanks: map[token.Pos]*types.Var{}, blank: map[*types.Var]bool{},
	}
	c.ignored()
	decls, literals := c.scan()
	// Functions of one package call each other, so their effects are computed
	// until they do not change, which takes a few rounds.
	for range 3 {
		c.literals = map[*ast.FuncLit]*touches{}
		for _, d := range decls {
			c.learn(d)
		}
	}
	c.literals = map[*ast.FuncLit]*touches{}
	for _, d := range decls {
		newFlow(c, d.Type, pass.TypesInfo.ObjectOf(d.Name).Type(), c.flows.FuncDecl(d), true).check()
		if fn, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
			if o := c.facts[fn]; o != nil && o.String() != "" {
				pass.ExportObjectFact(fn, o)
			}
		}
	}
	for _, l := range literals {
		f := newFlow(c, l.Type, pass.TypesInfo.TypeOf(l), c.flows.FuncLit(l), true)
		for _, v := range c.captured(l) {
			if c.assigns[v] == 1 { // it has no other value in the meantime
				f.outside = append(f.outside, v)
			}
		}
		f.check()
	}
	return nil, nil
}

// scan collects the functions of the package and the assignments to its
// variables.
func (c *checker) scan() (decls []*ast.FuncDecl, literals []*ast.FuncLit) {
	c.assigns, c.bound, c.ranges = map[*types.Var]int{}, map[*types.Var]ast.Expr{}, map[ast.Node]*ast.RangeStmt{}
	info := c.pass.TypesInfo
	given := func(e, value ast.Expr) {
		id, ok := ast.Unparen(e).(*ast.Ident)
		if !ok {
			return
		}
		v, ok := info.ObjectOf(id).(*types.Var)
		if !ok {
			return
		}
		if info.Defs[id] == nil { // its definition counts already
			c.assigns[v]++
		}
		if value != nil {
			if _, isFunc := v.Type().Underlying().(*types.Signature); isFunc {
				c.bound[v] = value
			}
		}
	}
	var tests []*ast.IfStmt
	nodes := []ast.Node{
		(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil), (*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.RangeStmt)(nil),
		(*ast.UnaryExpr)(nil), (*ast.IncDecStmt)(nil), (*ast.IfStmt)(nil),
	}
	c.pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder(nodes, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				decls = append(decls, n)
			}
		case *ast.FuncLit:
			literals = append(literals, n)
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if len(n.Rhs) == len(n.Lhs) {
					given(l, n.Rhs[i])
				} else {
					given(l, nil)
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					given(name, n.Values[i])
				}
			}
		case *ast.RangeStmt:
			c.ranges[n.X] = n
			given(n.Key, nil)
			given(n.Value, nil)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				given(n.X, nil)
			}
		case *ast.IncDecStmt:
			given(n.X, nil)
		case *ast.IfStmt:
			tests = append(tests, n)
		}
	})
	for _, o := range info.Defs {
		if v, ok := o.(*types.Var); ok {
			c.assigns[v]++
		}
	}
	c.flagged = c.underFlags(tests)
	return decls, literals
}

// reachesTensor reports whether a package can refer to tensors at all.
func reachesTensor(pkg *types.Package) bool {
	if pkg.Path() == tensorPath {
		return false // it implements handles
	}
	for _, p := range pkg.Imports() {
		if p.Path() == module || strings.HasPrefix(p.Path(), module+"/") {
			return true
		}
	}
	return false
}

// learn computes the effect of the function on its parameters and results.
func (c *checker) learn(d *ast.FuncDecl) {
	fn, ok := c.pass.TypesInfo.Defs[d.Name].(*types.Func)
	if !ok {
		return
	}
	f := newFlow(c, d.Type, fn.Type(), c.flows.FuncDecl(d), false)
	f.check()
	c.facts[fn] = f.ownership(declared(d))
}

// declared returns the parameters that the function's comment says it consumes.
func declared(d *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	if d.Doc == nil {
		return names
	}
	for _, line := range d.Doc.List {
		if rest, ok := strings.CutPrefix(line.Text, "//tenure:consumes "); ok {
			for _, name := range strings.Fields(rest) {
				names[name] = true
			}
		}
	}
	return names
}

// known returns the effect of a function, nil if it is not known.
func (c *checker) known(fn *types.Func) *Ownership {
	fn = fn.Origin()
	if o := c.facts[fn]; o != nil {
		return o
	}
	var o Ownership
	if c.pass.ImportObjectFact(fn, &o) {
		return &o
	}
	return nil
}

// reachable returns the blocks of a function, nil if it has no graph.
func reachable(g *cfg.CFG) []*cfg.Block {
	if g == nil {
		return nil
	}
	return g.Blocks
}
