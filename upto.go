package tenure

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// WithUpTo makes the session promise memory for all sizes of a dimension up to
// a bound: from 0 to most. [Model.NewSession] makes the plan of every size, has
// each proved, and takes the memory of the largest figures, once: no later run
// takes or frees an arena. [Session.Promise] is the promise. A run of a larger
// size is refused, by an error that is [ErrShape] and [ErrInput].
//
// A dimension is named as in [Model.Inputs]: with "batch" for f32[batch,80] the
// bound is for all dimensions of that name. One without a name is named by its
// input and its place in the shape: "input_ids[1]"; a name of that form may
// also stand for a dimension that has one. A dimension whose name is a sum,
// such as "past + sequence", needs no bound of its own if the terms have
// bounds; inputs must then have the size of the sum. Every other open dimension
// needs a bound, by this option or by [WithSizes].
//
// Ranges of up to 4096 sizes, the product over the dimensions, zeros aside, are
// planned size by size. Larger ones are cut into boxes: the plan of the largest
// sizes of a box is made, and proved with expressions to be one for all of its
// sizes. Sizes for which that is not proved are planned one by one; more than
// 65,536 of them are refused (ErrUnsupported), by an error that says why they
// are not proved. Programs with branches or loops, and values whose size
// depends on data, are never proved by expressions.
//
// Sizes that the model itself refuses, by its shape rules or because an index
// that it computes from sizes is out of range, are no part of the promise; it
// lists them. A model that has no plan without the values of inputs has no such
// promise either (ErrUnsupported). What is unpromised in a plan stays so, see
// [plan.Range].
//
// The promise holds for inputs that are borrowed and for those that are given
// up. Runs that give up inputs have plans of their own, which are no part of
// the enumeration: one that would take more than the promise is refused
// (ErrLimit), or, where all inputs that it gives up are to be reused, only
// releases them.
func WithUpTo(dimension string, most int) SessionOption {
	return func(o *sessionOptions) { o.bounds = append(o.bounds, bounded{name: dimension, most: most}) }
}

// WithSizes is [WithUpTo] for the given sizes of a dimension alone: runs of
// other sizes are refused. One size fixes the dimension.
func WithSizes(dimension string, sizes ...int) SessionOption {
	return func(o *sessionOptions) {
		o.bounds = append(o.bounds, bounded{name: dimension, sizes: append([]int{}, sizes...)})
	}
}

// WithGiveBack makes a session with bounds ([WithUpTo]) take the memory of each
// run's size: a smaller one gives memory back to the system, and a larger one
// takes it again. The promise is the same.
func WithGiveBack() SessionOption { return func(o *sessionOptions) { o.giveBack = true } }

// bounded is an option: the sizes of a dimension.
type bounded struct {
	name  string
	most  int
	sizes []int // nil: 0 to most
}

// sizes are the sizes of inputs that a session admits.
type sizes struct {
	inputs []Info
	dims   []dimension   // that have sizes of their own
	places [][]sizePlace // by input and axis
}

// dimension is a dimension of the inputs, wherever it occurs.
type dimension struct {
	name  string
	most  int   // the largest
	sizes []int // in rising order
	every bool  // they are 0 to most
}

// sizePlace says where the size of an axis comes from: it is fixed, and more by
// the sizes of dimensions.
type sizePlace struct {
	fixed int
	terms []int
}

// sizesOf finds the dimensions that options name.
func (m *Model) sizesOf(bounds []bounded) (*sizes, error) {
	s := &sizes{inputs: m.inputs}
	for _, b := range bounds {
		name, err := m.dimension(b.name)
		if err != nil {
			return nil, err
		}
		if s.find(name) >= 0 {
			return nil, fmt.Errorf("dimension %q: it is given twice: %w", name, ErrInput)
		}
		d := dimension{name: name, most: b.most, every: b.sizes == nil, sizes: slices.Compact(slices.Sorted(slices.Values(b.sizes)))}
		if !d.every {
			if len(d.sizes) == 0 || d.sizes[0] < 0 {
				return nil, fmt.Errorf("dimension %q: got the sizes %v, want one or more, of 0 or more: %w", name, b.sizes, ErrInput)
			}
			d.most = d.sizes[len(d.sizes)-1]
		}
		if d.most < 0 || d.every && d.most == 0 {
			return nil, fmt.Errorf("dimension %q: got the bound %d, want 1 or more: %w", name, d.most, ErrInput)
		}
		s.dims = append(s.dims, d)
	}
	if err := s.locate(); err != nil {
		return nil, err
	}
	return s, nil
}

// dimension returns the name of an open dimension: its own, or the input's with
// the axis.
func (m *Model) dimension(name string) (string, error) {
	var known []string
	for _, in := range m.inputs {
		if in.Shape == nil {
			continue
		}
		for axis, d := range in.Shape.Dims() {
			place := placeName(in, axis)
			switch symbol, ok := d.Symbol(); {
			case ok && (symbol == name || place == name):
				return symbol, nil
			case ok:
				known = append(known, strconv.Quote(symbol))
			case place == name && d == shape.Unknown:
				return place, nil
			case place == name:
				return "", fmt.Errorf("dimension %q: got bounds for a dimension whose size is %s in the model: %w", name, d, ErrInput)
			case d == shape.Unknown:
				known = append(known, strconv.Quote(place))
			}
		}
	}
	slices.Sort(known)
	want := "the model has no open dimensions"
	if len(known) > 0 {
		want = "want one of " + strings.Join(slices.Compact(known), ", ")
	}
	return "", fmt.Errorf("got bounds for the dimension %q, %s: %w", name, want, ErrInput)
}

// placeName names an axis of an input.
func placeName(in Info, axis int) string { return fmt.Sprintf("%s[%d]", in.Name, axis) }

func (s *sizes) find(name string) int {
	return slices.IndexFunc(s.dims, func(d dimension) bool { return d.name == name })
}

// locate finds where the sizes of all axes come from.
func (s *sizes) locate() error {
	var open []string
	for _, in := range s.inputs {
		if in.Shape == nil {
			return fmt.Errorf("input %s: got no rank in the model, want one for a promise for many sizes: %w", in, ErrUnsupported)
		}
		places := make([]sizePlace, in.Shape.Rank())
		for axis, d := range in.Shape.Dims() {
			if n, ok := d.Size(); ok {
				places[axis] = sizePlace{fixed: n}
				continue
			}
			name, ok := d.Symbol()
			if !ok {
				name = placeName(in, axis)
			}
			if at, ok := s.place(name); ok {
				places[axis] = at
			} else {
				open = append(open, strconv.Quote(name))
			}
		}
		s.places = append(s.places, places)
	}
	if len(open) > 0 {
		slices.Sort(open)
		return fmt.Errorf("got no bounds for %s, want some for every open dimension (WithUpTo, WithSizes): %w", strings.Join(slices.Compact(open), ", "), ErrInput)
	}
	return nil
}

// place says where the size of a dimension comes from: from its own sizes, or
// from those of others, whose sum it is by its name, as exporters write it.
func (s *sizes) place(name string) (sizePlace, bool) {
	if i := s.find(name); i >= 0 {
		return sizePlace{terms: []int{i}}, true
	}
	var names []string
	for _, d := range s.dims {
		names = append(names, d.name)
	}
	terms, rest := sumOf(name, names)
	at := sizePlace{fixed: int(rest)}
	for _, term := range terms {
		at.terms = append(at.terms, s.find(term))
	}
	return at, len(terms) > 0
}

// count is how many sizes other than 0 the dimension has.
func (d *dimension) count() int {
	if d.every {
		return d.most
	}
	n := len(d.sizes)
	if d.sizes[0] == 0 {
		n--
	}
	return max(n, 1)
}

func (d *dimension) admits(n int) bool {
	if d.every {
		return 0 <= n && n <= d.most
	}
	_, ok := slices.BinarySearch(d.sizes, n)
	return ok
}

// falling lists the sizes, the largest first.
func (d *dimension) falling() iter.Seq[int] {
	return func(yield func(int) bool) {
		if !d.every {
			for _, n := range slices.Backward(d.sizes) {
				if !yield(n) {
					return
				}
			}
			return
		}
		for n := d.most; n >= 0; n-- {
			if !yield(n) {
				return
			}
		}
	}
}

// number returns how many combinations of sizes there are, those with zeros
// too.
func (s *sizes) number() float64 {
	n := 1.0
	for i := range s.dims {
		n *= float64(s.dims[i].number())
	}
	return n
}

// all lists all combinations of sizes, by dimension, those of the largest sizes
// first. The list that it yields is overwritten.
func (s *sizes) all() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		at := make([]int, len(s.dims))
		var next func(i int) bool
		next = func(i int) bool {
			if i == len(at) {
				return yield(at)
			}
			for n := range s.dims[i].falling() {
				at[i] = n
				if !next(i + 1) {
					return false
				}
			}
			return true
		}
		next(0)
	}
}

// types returns the types of inputs of these sizes.
func (s *sizes) types(at []int) ([]op.Type, error) {
	types := make([]op.Type, len(s.inputs))
	for i, in := range s.inputs {
		dims := make([]int, len(s.places[i]))
		for axis, p := range s.places[i] {
			dims[axis] = p.size(at)
		}
		to, err := shape.Of(dims...)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", in.Name, err)
		}
		types[i] = op.Type{DType: in.DType, Shape: to}
	}
	return types, nil
}

// size returns the size of an axis for sizes of the dimensions.
func (p *sizePlace) size(at []int) int {
	n := p.fixed
	for _, i := range p.terms {
		if at[i] > math.MaxInt-n {
			return math.MaxInt // more than any shape has
		}
		n += at[i]
	}
	return n
}

// admit returns an error for inputs of other sizes. Their types fit the
// model's. Each dimension is that of some axis alone.
func (s *sizes) admit(types []op.Type) error {
	at := make([]int, len(s.dims))
	for i := range s.places {
		if err := s.admitInput(i, types[i], at); err != nil {
			return err
		}
	}
	for i, places := range s.places {
		for axis, p := range places {
			n := types[i].Shape.Size(axis)
			if want := p.size(at); n != want {
				name, _ := s.inputs[i].Shape.Dim(axis).Symbol()
				return fmt.Errorf("input %q: got %s, in which dimension %q has the size %d, want %d, the sum that its name says: %w", s.inputs[i].Name, types[i], name, n, want, ErrShape)
			}
		}
	}
	return nil
}

// admitInput refuses the type of one input in which a dimension of its own has
// a size outside its bounds. It notes the sizes in at, unless that is nil.
func (s *sizes) admitInput(i int, typ op.Type, at []int) error {
	for axis, p := range s.places[i] {
		if len(p.terms) != 1 || p.fixed != 0 {
			continue
		}
		d, n := &s.dims[p.terms[0]], typ.Shape.Size(axis)
		if !d.admits(n) {
			return fmt.Errorf("input %q: got %s, in which dimension %q has the size %d, want %s: %w", s.inputs[i].Name, typ, d.name, n, d.text(), ErrShape)
		}
		if at != nil {
			at[p.terms[0]] = n
		}
	}
	return nil
}

// text is the bound of a dimension, for errors.
func (d *dimension) text() string {
	if d.every {
		return fmt.Sprintf("at most %d (WithUpTo)", d.most)
	}
	if len(d.sizes) == 1 {
		return fmt.Sprintf("%d (WithSizes)", d.sizes[0])
	}
	return fmt.Sprintf("one of %d sizes from %d to %d (WithSizes)", len(d.sizes), d.sizes[0], d.most)
}
