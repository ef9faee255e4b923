package vet

import (
	"go/ast"
	"go/types"
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

// Ownership is what callers of a function need to know of it.
type Ownership struct {
	Consumes []int // parameters that are dead after a call without an error
	Borrows  []int // parameters that the function neither gives up nor keeps
	Gives    bool  // the first result is a tensor of the caller's
}

// AFact marks the type as a fact.
func (*Ownership) AFact() {}

// String lists what is known.
func (o *Ownership) String() string {
	var parts []string
	if len(o.Consumes) > 0 {
		parts = append(parts, "consumes "+numbers(o.Consumes))
	}
	if len(o.Borrows) > 0 {
		parts = append(parts, "borrows "+numbers(o.Borrows))
	}
	if o.Gives {
		parts = append(parts, "gives")
	}
	return strings.Join(parts, ", ")
}

func numbers(list []int) string {
	var sb strings.Builder
	for i, n := range list {
		if i > 0 {
			sb.WriteByte(' ')
		}
		sb.WriteByte(byte('0' + n%10))
	}
	return sb.String()
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
	facts map[*types.Func]*Ownership // of this package's functions
	quiet map[string]map[int]bool    // lines that say //tenure:ignore, by file
}

// ignored collects the lines that are not to be reported.
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
	c := &checker{pass: pass, flows: pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs), facts: map[*types.Func]*Ownership{}}
	var decls []*ast.FuncDecl
	var literals []*ast.FuncLit
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				decls = append(decls, n)
			}
		case *ast.FuncLit:
			literals = append(literals, n)
		}
	})
	c.ignored()
	// Functions of one package call each other: what is known of them settles in a few rounds.
	for range 3 {
		for _, d := range decls {
			c.learn(d)
		}
	}
	for _, d := range decls {
		newFlow(c, d.Type, pass.TypesInfo.ObjectOf(d.Name).Type(), c.flows.FuncDecl(d), true).check()
		if fn, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
			if o := c.facts[fn]; o != nil && o.String() != "" {
				pass.ExportObjectFact(fn, o)
			}
		}
	}
	for _, l := range literals {
		newFlow(c, l.Type, pass.TypesInfo.TypeOf(l), c.flows.FuncLit(l), true).check()
	}
	return nil, nil
}

// reachesTensor reports whether a package can name a tensor at all.
func reachesTensor(pkg *types.Package) bool {
	if pkg.Path() == tensorPath {
		return false // it is about handles itself
	}
	for _, p := range pkg.Imports() {
		if p.Path() == module || strings.HasPrefix(p.Path(), module+"/") {
			return true
		}
	}
	return false
}

// learn works out what the function does with its parameters and results.
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

// known returns what is known of a function, nil if nothing is.
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

// named reports whether t, or what it points to, is the named type of package path.
func named(t types.Type, path, name string) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
}

func isTensor(t types.Type) bool {
	_, pointer := t.(*types.Pointer)
	return pointer && named(t, tensorPath, "Tensor")
}

func isView(t types.Type) bool { return named(t, tensorPath, "View") || named(t, tensorPath, "Bytes") }

func isError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// reachable returns the blocks of a function, nil if it has no graph.
func reachable(g *cfg.CFG) []*cfg.Block {
	if g == nil {
		return nil
	}
	return g.Blocks
}
