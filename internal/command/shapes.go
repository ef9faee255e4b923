package command

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/shape"
)

const shapeHelp = "sizes of an input, `NAME=SIZE,SIZE,...`, or of a symbolic dimension wherever it occurs, NAME=SIZE (again for more)"

// aboutShapes is the part of help that explains --shape.
const aboutShapes = `--shape batch=1 gives a symbolic dimension its size in all inputs, --shape
x=1,3,224,224 an input its shape, and with it sizes to the symbols in it. A
name of both is the input's where there are as many sizes as it has dimensions,
else the symbol's. A dimension that is called "a + b" is the sum where a and b
have sizes and it has none of its own.`

// sizes is what --shape says, by name: which names are inputs and which are
// dimensions is the model's.
type sizes map[string][]int

// parseShapes reads --shape name=1,3,224,224; a scalar is name= .
func parseShapes(flags []string) (sizes, error) {
	all := sizes{}
	for _, f := range flags {
		i := strings.LastIndex(f, "=")
		if i <= 0 {
			return nil, usagef("--shape %s: want NAME=SIZE,SIZE,...", f)
		}
		name, list := f[:i], strings.Trim(f[i+1:], "[] ")
		dims := []int{}
		for _, word := range strings.Split(list, ",") {
			if list == "" {
				break
			}
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil || n < 0 {
				return nil, usagef("--shape %s: got size %q, want a number of zero or more", f, word)
			}
			dims = append(dims, n)
		}
		if _, twice := all[name]; twice {
			return nil, usagef("--shape %s: %q is given twice", f, name)
		}
		all[name] = dims
	}
	return all, nil
}

// bound is the known sizes of a model's inputs.
type bound struct {
	inputs []tenure.Info
	shapes tenure.Shapes // of inputs
	dims   map[string]int
}

// bind finds the inputs and symbols that the names of --shape stand for in a
// model, and completes the shapes of inputs whose symbols all have sizes.
func (given sizes) bind(m *tenure.Model) (*bound, error) {
	b := &bound{inputs: m.Inputs(), shapes: tenure.Shapes{}, dims: map[string]int{}}
	symbols := symbolsOf(b.inputs)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		dims := given[name]
		input, isInput := inputOf(m, name)
		isSymbol := slices.Contains(symbols, name)
		switch {
		case isInput && (!isSymbol || len(dims) != 1 || input.Shape == nil || input.Shape.Rank() == 1):
			b.shapes[name] = dims
		case !isSymbol:
			known := "want an input: " + inputNames(m)
			if len(symbols) > 0 {
				known += "; or a symbolic dimension: " + strings.Join(symbols, ", ")
			}
			return nil, fmt.Errorf("--shape: got %q, %s: %w", name, known, tenure.ErrInput)
		case len(dims) != 1:
			return nil, fmt.Errorf("--shape: got %s for the symbolic dimension %q, want one: %w", countText(len(dims), "size", "sizes"), name, tenure.ErrInput)
		default:
			b.dims[name] = dims[0]
		}
	}
	if err := b.learn(); err != nil {
		return nil, err
	}
	for _, info := range b.inputs {
		s, err := b.shapeOf(info)
		if err != nil {
			return nil, err
		}
		if _, ok := b.shapes[info.Name]; !ok && s != nil && s != info.Shape && s.IsStatic() {
			b.shapes[info.Name] = s.Sizes()
		}
	}
	return b, nil
}

// learn takes the sizes of symbols from the shapes of inputs that have them,
// the first of several: the model decides whether it admits others.
func (b *bound) learn() error {
	named := maps.Clone(b.dims)
	for _, info := range b.inputs {
		sizes, ok := b.shapes[info.Name]
		if !ok || info.Shape == nil || info.Shape.Rank() != len(sizes) {
			continue // where the rank is wrong, planning says so
		}
		for i, n := range sizes {
			symbol, ok := info.Shape.Dim(i).Symbol()
			if !ok {
				continue
			}
			if known, ok := named[symbol]; ok && known != n {
				return fmt.Errorf("--shape: input %s: got %s = %d, want %d as elsewhere: %w", info, symbol, n, known, tenure.ErrInput)
			}
			if _, ok := b.dims[symbol]; !ok {
				b.dims[symbol] = n
			}
		}
	}
	return nil
}

// shapeOf returns an input's shape as far as it is known, nil for one whose
// rank is not.
func (b *bound) shapeOf(info tenure.Info) (*shape.Shape, error) {
	if sizes, ok := b.shapes[info.Name]; ok {
		s, err := shape.Of(sizes...)
		if err != nil {
			return nil, fmt.Errorf("--shape: input %q: %w", info.Name, err)
		}
		return s, nil
	}
	if info.Shape == nil {
		return nil, nil
	}
	dims := slices.Clone(info.Shape.Dims())
	for i, d := range dims {
		if symbol, ok := d.Symbol(); ok {
			if n, ok := b.size(symbol); ok {
				dims[i] = shape.N(n)
			}
		}
	}
	s, err := shape.FromDims(dims...)
	if err != nil {
		return nil, fmt.Errorf("--shape: input %s: %w", info, err)
	}
	return s, nil
}

// size returns the size of a symbolic dimension: its own, or the sum of
// products that its name says, as exporters write it.
func (b *bound) size(symbol string) (int, bool) {
	if n, ok := b.dims[symbol]; ok {
		return n, true
	}
	sum := 0
	for term := range strings.SplitSeq(symbol, "+") {
		product := 1
		for factor := range strings.SplitSeq(term, "*") {
			factor = strings.TrimSpace(factor)
			n, ok := b.dims[factor]
			if !ok {
				var err error
				n, err = strconv.Atoi(factor)
				ok = err == nil && n >= 0
			}
			if !ok || product > math.MaxInt32 || n > math.MaxInt32 {
				return 0, false
			}
			product *= n
		}
		if product > math.MaxInt-sum {
			return 0, false
		}
		sum += product
	}
	return sum, true
}

// symbolsOf lists the symbolic dimensions of inputs, each once.
func symbolsOf(inputs []tenure.Info) []string {
	var list []string
	for _, info := range inputs {
		if info.Shape == nil {
			continue
		}
		for _, d := range info.Shape.Dims() {
			if symbol, ok := d.Symbol(); ok && !slices.Contains(list, symbol) {
				list = append(list, symbol)
			}
		}
	}
	return list
}

// hint adds to the error of a plan what --shape has to say yet.
func (b *bound) hint(err error) error {
	if !errors.Is(err, tenure.ErrInput) {
		return err
	}
	var hints []string
	for _, info := range b.inputs {
		s, bad := b.shapeOf(info)
		if bad != nil || s != nil && s.IsStatic() {
			continue
		}
		if open := symbolsOf([]tenure.Info{{Shape: s}}); s != nil && slices.IndexFunc(s.Dims(), isUnknown) < 0 {
			for _, symbol := range open {
				hints = append(hints, fmt.Sprintf("--shape %s=SIZE", quoteWord(symbol)))
			}
			continue
		}
		sizes := "SIZE,..."
		if s != nil {
			sizes = strings.Trim(s.String(), "[]")
		}
		hints = append(hints, fmt.Sprintf("--shape %s=%s", quoteWord(info.Name), sizes))
	}
	return hintError{err, slices.Compact(slices.Sorted(slices.Values(hints)))}
}

func isUnknown(d shape.Dim) bool {
	_, sized := d.Size()
	_, named := d.Symbol()
	return !sized && !named
}

// quoteWord writes a word as a shell takes it.
func quoteWord(s string) string {
	if strings.ContainsAny(s, " \t'\"\\$`*?[]()&;|<>#!~{}") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
