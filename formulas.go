package tenure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// Sizes is the sizes from Lo to Hi of a dimension, both included.
type Sizes struct{ Lo, Hi int }

// OpenDims returns the names of the dimensions that the model leaves open, each
// once, in the order of the inputs: symbols, and "x[2]" for a dimension of
// input x without a symbol. A symbol that is a sum of others and numbers,
// "past + seq", is not among them: its size is the sum.
func (m *Model) OpenDims() []string {
	if m.none() {
		return nil
	}
	var symbols, list []string
	for _, in := range m.inputs {
		for i := range in.Shape.Rank() {
			if s, ok := in.Shape.Dim(i).Symbol(); ok {
				symbols = append(symbols, s)
			}
		}
	}
	for _, in := range m.inputs {
		for i := range in.Shape.Rank() {
			for _, name := range openNames(in, i, symbols) {
				if !slices.Contains(list, name) {
					list = append(list, name)
				}
			}
		}
	}
	return list
}

// openNames returns the dimensions that the size of an axis of an input depends
// on.
func openNames(in Info, axis int, symbols []string) []string {
	d := in.Shape.Dim(axis)
	if _, ok := d.Size(); ok {
		return nil
	}
	s, ok := d.Symbol()
	if !ok {
		return []string{placeName(in, axis)}
	}
	if terms, _ := sumOf(s, symbols); terms != nil {
		return terms
	}
	return []string{s}
}

// mostTimes bounds the factor of a symbol in a sum.
const mostTimes = 64

// sumOf reads a symbol as a sum of other symbols, of multiples of them and of
// numbers, as exporters write it: "past + 1", "2*frames". It returns no terms
// for any other, and a symbol as often as it counts.
func sumOf(symbol string, symbols []string) (terms []string, rest int64) {
	if !strings.ContainsAny(symbol, "+*") {
		return nil, 0
	}
	for word := range strings.SplitSeq(symbol, "+") {
		word = strings.TrimSpace(word)
		if n, err := strconv.ParseInt(word, 10, 32); err == nil && n >= 0 {
			rest += n
			continue
		}
		times := 1
		if left, right, ok := strings.Cut(word, "*"); ok && (word == symbol || !slices.Contains(symbols, word)) {
			left, right = strings.TrimSpace(left), strings.TrimSpace(right)
			if slices.Contains(symbols, left) {
				left, right = right, left
			}
			n, err := strconv.Atoi(left)
			if err != nil || n < 1 || n > mostTimes {
				return nil, 0
			}
			times, word = n, right
		}
		if word == symbol || !slices.Contains(symbols, word) {
			return nil, 0
		}
		terms = append(terms, slices.Repeat([]string{word}, times)...)
	}
	return terms, rest
}

// mostFormulaSizes is the most sets of sizes that are planned one by one.
const mostFormulaSizes = 4096

// Formulas returns what runs take for ranges of sizes: figures for each set of
// sizes, and for each structure of the model expressions over its dimensions.
// shapes are those of inputs whose sizes are fixed, dims the ranges of open
// dimensions by name, see [Model.OpenDims]: each needs a range or a fixed
// shape.
//
// The expressions are derived from the operators' shape rules and compared with
// every plan that is made. Up to 4,096 sets of sizes are planned, each; of
// larger ranges those along one dimension with the others at their largest. A
// set of sizes that the model does not accept is listed and left out.
func (m *Model) Formulas(ctx context.Context, shapes Shapes, dims map[string]Sizes, opts ...SessionOption) (*plan.Formulas, error) {
	if err := ended.Missing(ctx); err != nil {
		return nil, fmt.Errorf("formulas: %w", err)
	}
	if m.none() {
		return nil, fmt.Errorf("formulas: got no model: %w", ErrClosed)
	}
	o, err := configure(opts)
	if err != nil {
		return nil, fmt.Errorf("formulas: %w", err)
	}
	s := &survey{model: m, options: o, box: symbolic.Box{}, found: map[string]*surveyed{}}
	if err := s.prepare(shapes, dims); err != nil {
		return nil, fmt.Errorf("formulas: %w", err)
	}
	err = m.withWeights("formulas", func() error { return s.run(ctx) })
	if err != nil {
		return nil, fmt.Errorf("formulas: %w", err)
	}
	return s.report(), nil
}

// survey plans a model for many sets of sizes.
type survey struct {
	model   *Model
	options sessionOptions

	dims   []string // that vary or have one size, by name
	ranges []Sizes
	box    symbolic.Box
	params [][]*symbolic.Expr // dimensions of the inputs
	types  []op.Type          // element types

	structures []*formulated
	found      map[string]*surveyed // by sizes
	order      []*surveyed
	every      bool
	lines      [][]*surveyed // by dimension
	pinned     map[string]*plan.Exception
}

// surveyed is the plan for one set of sizes.
type surveyed struct {
	sizes map[string]int64
	text  string
	plan.FiguresAt
}

// prepare finds the dimensions of the inputs as expressions.
func (s *survey) prepare(shapes Shapes, dims map[string]Sizes) error {
	m := s.model
	for _, name := range m.OpenDims() {
		if r, ok := dims[name]; ok {
			if r.Lo < 0 || r.Hi < r.Lo {
				return fmt.Errorf("dimension %q: got sizes from %d to %d, want 0 or more, and one at least: %w", name, r.Lo, r.Hi, ErrInput)
			}
			s.dims, s.ranges = append(s.dims, name), append(s.ranges, r)
			s.box[name] = symbolic.Range{Lo: int64(r.Lo), Hi: int64(r.Hi)}
		}
	}
	for name := range dims {
		if !slices.Contains(s.dims, name) {
			return fmt.Errorf("got dimension %q, want one of %q: %w", name, m.OpenDims(), ErrInput)
		}
	}
	if unknown := m.unknown(func(yield func(string) bool) {
		for name := range shapes {
			if !yield(name) {
				return
			}
		}
	}); unknown != "" {
		return fmt.Errorf("got a shape for %s, want inputs of the model: %s: %w", unknown, names(m.inputs), ErrInput)
	}
	for _, in := range m.inputs {
		s.types = append(s.types, op.Type{DType: in.DType})
		if fixed, ok := shapes[in.Name]; ok {
			var list []*symbolic.Expr
			for _, n := range fixed {
				list = append(list, symbolic.Const(int64(n)))
			}
			s.params = append(s.params, list)
			continue
		}
		if in.Shape == nil {
			return fmt.Errorf("input %s: got no shape, want one where not even the number of dimensions is known: %w", in, ErrInput)
		}
		var list []*symbolic.Expr
		for axis := range in.Shape.Rank() {
			e, err := s.dimOf(in, axis)
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		s.params = append(s.params, list)
	}
	return nil
}

// dimOf returns the size of an axis of an input as an expression.
func (s *survey) dimOf(in Info, axis int) (*symbolic.Expr, error) {
	d := in.Shape.Dim(axis)
	if n, ok := d.Size(); ok {
		return symbolic.Const(int64(n)), nil
	}
	sum := symbolic.Const(0)
	if symbol, ok := d.Symbol(); ok {
		_, rest := sumOf(symbol, s.model.OpenDims())
		sum = symbolic.Const(rest)
	}
	for _, name := range openNames(in, axis, s.model.OpenDims()) {
		if _, ok := s.box[name]; !ok {
			return nil, fmt.Errorf("input %s: got no sizes for the dimension %q, want a range: %w", in, name, ErrInput)
		}
		sum = sum.Add(symbolic.Symbol(name))
	}
	return sum, nil
}

// run plans all sets of sizes, or those along each dimension.
func (s *survey) run(ctx context.Context) error {
	count := 1
	for _, r := range s.ranges {
		if n := r.Hi - r.Lo + 1; count <= mostFormulaSizes {
			count *= min(n, mostFormulaSizes+1)
		}
	}
	s.every = count <= mostFormulaSizes
	if s.every {
		if err := s.all(ctx, map[string]int64{}, 0); err != nil {
			return err
		}
	}
	for i, name := range s.dims {
		r := s.ranges[i]
		if r.Lo == r.Hi && len(s.dims) > 1 {
			s.lines = append(s.lines, nil)
			continue
		}
		sizes := map[string]int64{}
		for j, other := range s.dims {
			sizes[other] = int64(s.ranges[j].Hi)
		}
		step := (r.Hi-r.Lo)/(mostFormulaSizes/max(len(s.dims), 1)) + 1
		var line []*surveyed
		for n := r.Lo; n <= r.Hi; n += step {
			sizes[name] = int64(n)
			at, err := s.at(ctx, sizes)
			if err != nil {
				return err
			}
			line = append(line, at)
			if n < r.Hi && n+step > r.Hi {
				n = r.Hi - step // the largest size is one of them
			}
		}
		s.lines = append(s.lines, line)
	}
	if len(s.dims) == 0 {
		_, err := s.at(ctx, nil)
		return err
	}
	return nil
}

// all plans every set of sizes whose first dimensions have these.
func (s *survey) all(ctx context.Context, sizes map[string]int64, i int) error {
	if i == len(s.dims) {
		_, err := s.at(ctx, sizes)
		return err
	}
	for n := s.ranges[i].Lo; n <= s.ranges[i].Hi; n++ {
		sizes[s.dims[i]] = int64(n)
		if err := s.all(ctx, sizes, i+1); err != nil {
			return err
		}
	}
	return nil
}

// text names a set of sizes.
func (s *survey) text(sizes map[string]int64, except string) string {
	var words []string
	for _, name := range s.dims {
		if name != except {
			words = append(words, fmt.Sprintf("%s = %d", name, sizes[name]))
		}
	}
	return strings.Join(words, ", ")
}

// at plans one set of sizes, unless it was planned before.
func (s *survey) at(ctx context.Context, sizes map[string]int64) (*surveyed, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended.Error(ctx)
	}
	text := s.text(sizes, "")
	if x := s.found[text]; x != nil {
		return x, nil
	}
	x := &surveyed{sizes: map[string]int64{}, text: text, FiguresAt: plan.FiguresAt{Sizes: text, Structure: -1, Moment: -1}}
	for name, n := range sizes {
		x.sizes[name] = n
	}
	s.found[text] = x
	s.order = append(s.order, x)
	types, err := s.typesFor(sizes)
	if err == nil {
		err = s.plan(ctx, x, target{types: types})
	}
	var broken *brokenFormula
	switch {
	case errors.As(err, &broken), ctx.Err() != nil:
		return nil, err
	case err != nil:
		x.Failed = err.Error()
	}
	return x, nil
}

func (s *survey) typesFor(sizes map[string]int64) ([]op.Type, error) {
	types := slices.Clone(s.types)
	for i, dims := range s.params {
		list := make([]int, len(dims))
		for axis, e := range dims {
			n, ok := e.Eval(sizes)
			if !ok {
				return nil, fmt.Errorf("a size beyond all bounds: %w", ErrInput)
			}
			list[axis] = int(n)
		}
		sh, err := shape.Of(list...)
		if err != nil {
			return nil, err
		}
		types[i].Shape = sh
	}
	return types, nil
}

// brokenFormula is a formula that is not what the plan is: a fault of Tenure.
type brokenFormula struct{ error }

func (b *brokenFormula) Unwrap() error { return b.error }

// plan makes the executable for a set of sizes, as an instance of a structure
// that was met before or with the passes, and compares it with the formulas.
func (s *survey) plan(ctx context.Context, x *surveyed, t target) error {
	m := s.model
	if err := m.program.CheckInputs(t.types); err != nil {
		return inputError{err}
	}
	for i, st := range s.structures {
		table := &weights.Overlay{Base: st.Constants()}
		types := st.Types(t.types, nil, table)
		if types == nil {
			continue
		}
		exe, err := m.instantiate(ctx, st.structure, types, table, s.options)
		if errors.Is(err, exec.ErrStructure) {
			continue
		}
		if err != nil {
			return broken(err)
		}
		x.Structure = i
		return s.compare(x, exe, types)
	}
	c, err := m.specialise(t, nil, true)
	if err != nil {
		return err
	}
	exe, err := exec.Compile(ctx, c.Program, c.Constants, m.execOptions(s.options, c.Declined, c.Copies))
	if err != nil {
		return broken(err)
	}
	st, reason := c.Structure()
	if st == nil {
		s.pin(reason, x.text)
		return s.figures(x, exe)
	}
	kept := &structure{Structure: st}
	kept.compiled(exe, s.options)
	f, err := s.formulate(kept, exe)
	if err != nil {
		return err
	}
	s.structures = append(s.structures, f)
	x.Structure = len(s.structures) - 1
	return s.compare(x, exe, ir.TypesOf(c.Program))
}

func (s *survey) pin(reason, text string) {
	if s.pinned == nil {
		s.pinned = map[string]*plan.Exception{}
	}
	if s.pinned[reason] == nil {
		s.pinned[reason] = &plan.Exception{Reason: reason, First: text}
	}
	s.pinned[reason].Sizes++
}

// figures takes over the figures of an executable.
func (s *survey) figures(x *surveyed, exe *exec.Executable) error {
	b, err := exe.Bytes()
	if err != nil {
		return err
	}
	x.Arena, x.LowerBound, x.IO, x.Weights = exe.ArenaBytes, b.LowerBound, b.IO, b.Weights
	x.Scratch = exe.ScratchBytes / int64(max(s.options.threads, 1))
	x.PerRun = x.Arena + exe.ScratchBytes + x.IO
	return nil
}

// formulated is a structure with the expressions of its values.
type formulated struct {
	*structure
	*pass.Formulas
	program *ir.Program
	moments []exec.Moment
	derived bool             // all moments have expressions
	bytes   []*symbolic.Expr // by moment
	exact   bool
	inputs  *symbolic.Expr
	outputs *symbolic.Expr
	weights *symbolic.Expr // without what packing adds

	packed  int64 // what packing adds, where it is the same for all sizes
	packing bool  // packed was set
	differs bool  // it is not the same
	over    float64
	sizes   int
	first   string
	worst   []int    // by moment: sets of sizes at which it is the largest
	firsts  []string // of them
}

// formulate derives the formulas of a structure.
func (s *survey) formulate(st *structure, exe *exec.Executable) (*formulated, error) {
	f := &formulated{structure: st, Formulas: st.Formulas(s.params, s.box), program: exe.Program, over: 1}
	moments, ok, err := exe.Moments()
	if err != nil {
		return nil, err
	}
	f.derived, f.exact = ok, true
	var sums []*symbolic.Expr
	for _, m := range moments {
		sum := symbolic.Const(0)
		for _, id := range m.Values {
			sum = sum.Add(f.Bytes(id).RoundUp(plan.DefaultAlign))
		}
		sums = append(sums, sum)
		f.derived = f.derived && sum != nil
	}
	for i, sum := range sums {
		least := slices.ContainsFunc(sums[:i], func(o *symbolic.Expr) bool { return sum.AtMost(o, s.box) }) ||
			slices.ContainsFunc(sums[i+1:], func(o *symbolic.Expr) bool { return sum.AtMost(o, s.box) && !o.AtMost(sum, s.box) })
		if !least {
			f.moments, f.bytes = append(f.moments, moments[i]), append(f.bytes, sum)
			f.exact = f.exact && moments[i].Exact
		}
	}
	f.worst, f.firsts = make([]int, len(f.moments)), make([]string, len(f.moments))
	sum := func(values []*ir.Value) *symbolic.Expr {
		all := symbolic.Const(0)
		for _, v := range values {
			all = all.Add(f.Bytes(v.ID))
		}
		return all
	}
	f.inputs, f.outputs, f.weights = sum(f.program.Body.Params), sum(f.program.Body.Results), sum(f.program.Weights)
	return f, nil
}

// compare takes over the figures of an instance and compares them with the
// formulas of its structure.
func (s *survey) compare(x *surveyed, exe *exec.Executable, types ir.Types) error {
	if err := s.figures(x, exe); err != nil {
		return err
	}
	f := s.structures[x.Structure]
	if f.sizes++; f.sizes == 1 {
		f.first = x.text
	}
	if err := f.Check(x.sizes, types); err != nil {
		return &brokenFormula{err}
	}
	constants := int64(0)
	for _, w := range f.program.Weights {
		n, _ := types.Of(w).Bytes()
		constants += int64(n)
	}
	if packed := x.Weights - constants; !f.packing {
		f.packed, f.packing = packed, true
	} else {
		f.differs = f.differs || packed != f.packed
	}
	if f.inputs != nil && f.outputs != nil {
		if n, ok := f.inputs.Add(f.outputs).Eval(x.sizes); !ok || n != x.IO {
			return &brokenFormula{fmt.Errorf("BUG: the formula of inputs and outputs is %d for %s, want %d", n, x.text, x.IO)}
		}
	}
	if !f.derived {
		return nil
	}
	most := int64(0)
	for i, e := range f.bytes {
		n, ok := e.Eval(x.sizes)
		if !ok {
			return &brokenFormula{fmt.Errorf("BUG: the formula %s of the arena has no value for %s", e, x.text)}
		}
		if n > most {
			most, x.Moment = n, i
		}
	}
	if x.Moment >= 0 {
		if f.worst[x.Moment]++; f.worst[x.Moment] == 1 {
			f.firsts[x.Moment] = x.text
		}
	}
	if most < x.LowerBound || f.exact && most != x.LowerBound {
		return &brokenFormula{fmt.Errorf("BUG: the formula of the arena is %d for %s, want the lower bound %d", most, x.text, x.LowerBound)}
	}
	if most > 0 {
		f.over = max(f.over, float64(x.Arena)/float64(most))
	}
	return nil
}
