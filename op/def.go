package op

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// ErrUnsupported marks an operator, attribute or element type that is not
// supported.
var ErrUnsupported = dtype.ErrUnsupported

// Variadic as MaxArgs or MaxResults means that there is no upper bound.
const Variadic = -1

// Type is the type of a value: its element type and shape. The zero Type
// stands for an absent optional operand or result.
type Type struct {
	DType dtype.DType
	Shape *shape.Shape
}

// IsZero reports whether the type is that of an absent operand.
func (t Type) IsZero() bool { return t.DType == dtype.Invalid }

// IsStatic reports whether every dimension has a size.
func (t Type) IsStatic() bool { return t.Shape != nil && t.Shape.IsStatic() }

// Open returns the type with every size unknown: only the rank stays.
func (t Type) Open() Type {
	if t.Shape == nil {
		return t
	}
	s, err := shape.FromDims(make([]shape.Dim, t.Shape.Rank())...)
	if err != nil {
		return Type{DType: t.DType}
	}
	return Type{DType: t.DType, Shape: s}
}

// Bytes returns the size of a value of a static type; it fails on another.
func (t Type) Bytes() (int, error) {
	if n, size := t.Shape.NumElements(), t.DType.Size(); n >= 0 && n <= math.MaxInt/16 && 0 < size && size <= 16 {
		return n * size, nil
	}
	if t.Shape == nil {
		return 0, badShape("bytes of %s: got a shape of unknown rank, want a static one", t)
	}
	return shape.Bytes(t.DType, t.Shape)
}

// String returns "f32[1,3,224,224]", "_" for the zero Type.
func (t Type) String() string {
	if t.IsZero() {
		return "_"
	}
	if t.Shape == nil {
		return t.DType.String() + "[...]"
	}
	return t.DType.String() + t.Shape.String()
}

// Def declares one operator. It must not be mutated after it is registered.
type Def struct {
	Name string // lower snake case, unique in a registry; users prefix theirs: "acme.my_op"
	Doc  string // one line without a full stop that begins with a verb: "returns the slices of x along axis that indices name"
	ONNX string // "OpType" or "domain::OpType" that imports as this operator; "" for none

	MinArgs, MaxArgs       int // MaxArgs may be Variadic; operands past MinArgs may be absent
	MinResults, MaxResults int // both 0 stand for exactly one
	Regions                int // nested blocks: 2 for if, 1 for loop

	// Branch says that exactly one of the regions runs, once: the first when
	// operand 0 is true, else the second. Result i of the call is result i of
	// that region. The regions of any other operator may run many times.
	Branch bool

	// Loop says that the region is the body of a loop. It runs at most as often
	// as operand 0 says, and while operand 1, and then the region's result 0,
	// is true; an absent operand sets no limit. The region's parameters are the
	// number of the iteration, its condition, and the loop state: first the
	// operands from 2 on, then the values that the previous iteration yielded
	// after its condition. The call's results are the final loop state, and the
	// other values that the iterations yielded, stacked.
	Loop bool

	Attrs []AttrDef

	// Infer is the shape rule: it checks the operand types and sets
	// s.Results (whose length is the number of results wanted).
	Infer func(s *Sig) error

	// Bound is for operators whose shape rule cannot say the sizes even when
	// every operand is known, because finding them is the work itself: it sets
	// s.Results to types that are large enough for any data. The kernel fills
	// the first bytes of such a result and sets its Type to the actual one;
	// the Type that it finds is the bound.
	Bound func(s *Sig) error

	Alias Alias

	// Impure marks an operator with an effect beyond its results, or one whose
	// results differ from call to call: it is neither folded nor merged nor
	// removed.
	Impure bool

	// Kernel computes the results of an operator that users bring. Built-in
	// operators have their kernels in package compute.
	Kernel func(*Call) error

	// Scratch returns the bytes of scratch that Kernel needs in Call.Scratch;
	// nil means none.
	Scratch func(*Sig) (int, error)
}

// Arity returns an error unless the operator takes nargs operands and returns
// nresults results.
func (d *Def) Arity(nargs, nresults int) error {
	if nargs < d.MinArgs || d.MaxArgs != Variadic && nargs > d.MaxArgs {
		return fmt.Errorf("got %d operands, want %s", nargs, countRange(d.MinArgs, d.MaxArgs))
	}
	lo, hi := d.MinResults, d.MaxResults
	if lo == 0 && hi == 0 {
		lo, hi = 1, 1
	}
	if nresults < lo || hi != Variadic && nresults > hi {
		return fmt.Errorf("got %d results, want %s", nresults, countRange(lo, hi))
	}
	return nil
}

func countRange(lo, hi int) string {
	switch {
	case hi == Variadic:
		return fmt.Sprintf("%d or more", lo)
	case lo == hi:
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// CheckAttrs returns an error that names the first attribute that the
// operator does not declare, that has another kind, or that is missing.
func (d *Def) CheckAttrs(attrs Attrs) error {
	for _, a := range attrs {
		def := d.attr(a.Name)
		if def == nil {
			return fmt.Errorf("attribute %q is not declared: %w", a.Name, ErrUnsupported)
		}
		if got := KindOf(a.Value); got != def.Kind {
			return fmt.Errorf("attribute %q: got %s, want %s", a.Name, got, def.Kind)
		}
	}
	for i := range d.Attrs {
		if d.Attrs[i].Needed && !attrs.Has(d.Attrs[i].Name) {
			return fmt.Errorf("attribute %q is missing", d.Attrs[i].Name)
		}
	}
	return nil
}

func (d *Def) attr(name string) *AttrDef {
	for i := range d.Attrs {
		if d.Attrs[i].Name == name {
			return &d.Attrs[i]
		}
	}
	return nil
}

// Sig is one call as the table sees it: the operator, the attributes and the
// types. Shape rules, alias conditions and scratch sizes are functions of it.
type Sig struct {
	Def     *Def
	Attrs   Attrs
	Args    []Type // zero Type: absent
	Results []Type // set by the shape rule; zero Type: not wanted

	// Regions holds, for operators with nested blocks, the result types of
	// each block.
	Regions [][]Type

	// Endless says of a loop that its condition is known to hold always: only
	// the number of iterations ends it.
	Endless bool

	// Known returns the bytes of an operand whose value is known (a constant),
	// in row-major order and little-endian, and false for any other. It may
	// be nil. The bytes must not be written.
	Known func(arg int) ([]byte, bool)
}

// Has reports whether the operand is present.
func (s *Sig) Has(arg int) bool { return arg < len(s.Args) && !s.Args[arg].IsZero() }

// Attr getters with the declared default.

// Int returns an integer attribute, its declared default when absent.
func (s *Sig) Int(name string) int64 { v, _ := s.attr(name).(int64); return v }

// Float returns a float attribute, its declared default when absent.
func (s *Sig) Float(name string) float64 { v, _ := s.attr(name).(float64); return v }

// Str returns a string attribute, its declared default when absent.
func (s *Sig) Str(name string) string { v, _ := s.attr(name).(string); return v }

// Ints returns an integer list attribute, its declared default when absent.
func (s *Sig) Ints(name string) []int64 { v, _ := s.attr(name).([]int64); return v }

// DType returns an element type attribute, its declared default when absent.
func (s *Sig) DType(name string) dtype.DType { v, _ := s.attr(name).(dtype.DType); return v }

func (s *Sig) attr(name string) any {
	if v := s.Attrs.Get(name); v != nil {
		return v
	}
	if d := s.Def.attr(name); d != nil {
		return d.Default
	}
	panic("BUG: op " + s.Def.Name + " reads attribute " + name + ", which it does not declare")
}

// InferTypes checks arity, attributes and operand types of a call and runs
// its shape rule, which sets s.Results. The error names the operator.
func InferTypes(s *Sig) error {
	if err := s.Infer(); err != nil {
		return fmt.Errorf("%s: %w", s.Def.Name, err)
	}
	return nil
}

// Infer is [InferTypes] for callers that name the call in their errors.
func (s *Sig) Infer() error {
	err := s.Def.Arity(len(s.Args), len(s.Results))
	if err == nil {
		err = s.Def.CheckAttrs(s.Attrs)
	}
	for i := 0; err == nil && i < s.Def.MinArgs; i++ {
		if s.Args[i].IsZero() {
			err = errAbsent(i)
		}
	}
	for i := range s.Args {
		if err == nil {
			err = s.wantRank(i, 0, MaxRank)
		}
	}
	if err == nil && len(s.Regions) != s.Def.Regions {
		err = fmt.Errorf("got %d regions, want %d", len(s.Regions), s.Def.Regions)
	}
	if err == nil {
		err = s.Def.Infer(s)
	}
	return err
}

// Largest returns the types of the results at their largest, after the shape
// rule has run: those of the rule where it knows sizes, the operator's bound
// elsewhere. It reports false when some result has no bound yet.
func (s *Sig) Largest() ([]Type, bool, error) {
	static := func(types []Type) bool {
		for _, t := range types {
			if !t.IsZero() && !t.IsStatic() {
				return false
			}
		}
		return true
	}
	if static(s.Results) {
		return s.Results, true, nil
	}
	if s.Def.Bound == nil || !static(s.Args) {
		return nil, false, nil
	}
	most := *s
	most.Results = make([]Type, len(s.Results))
	if err := s.Def.Bound(&most); err != nil {
		return nil, false, fmt.Errorf("%s: bound: %w", s.Def.Name, err)
	}
	if len(most.Results) != len(s.Results) {
		return nil, false, fmt.Errorf("%s: the bound gives %d types, want %d", s.Def.Name, len(most.Results), len(s.Results))
	}
	for i, t := range s.Results {
		if t.IsZero() {
			most.Results[i] = Type{}
		}
	}
	return most.Results, static(most.Results), nil
}

// IsStatic reports whether every operand and result of the call has a size.
func (s *Sig) IsStatic() bool {
	for _, types := range [2][]Type{s.Args, s.Results} {
		for _, t := range types {
			if !t.IsZero() && !t.IsStatic() {
				return false
			}
		}
	}
	return true
}
