package ortdiff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/opcases"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
	"github.com/tenure-go/tenure/shape"
)

// generatorOf returns what draws models of an operator: its generator, or one
// that draws from its cases; nil if it has neither.
func generatorOf(s onnx.Support) func(*drawer) {
	if draw := generators[s.Name]; draw != nil {
		return draw
	}
	return fromCases(s)
}

// fromCases returns what draws models from the cases of the operator that s
// becomes. Operands that stand for any numbers get other numbers, and other
// sizes where the shape rule allows; operands with given values keep these.
func fromCases(s onnx.Support) func(*drawer) {
	def := op.Builtin().Lookup(s.Operator)
	if def == nil || !s.Numbers {
		return nil
	}
	var cases []optest.Case
	for _, c := range opcases.All()[s.Operator] {
		if c.Fails == "" && isSmall(c) {
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return nil
	}
	return func(d *drawer) {
		c := pick(d, cases...)
		sizes := d.resized(def, c)
		d.node(s.Name[strings.LastIndex(s.Name, ":")+1:])
		for i, a := range c.Args {
			switch {
			case a.IsZero():
				d.skip()
			case opcases.IsAny(a):
				d.in(a.DType, sizes[i]...)
			default:
				d.operand(d.value(a.DType, sizes[i], a.Data, d.fixed))
			}
		}
		for _, a := range c.Attrs {
			switch v := a.Value.(type) {
			case dtype.DType:
				d.attr(a.Name, int(v.ONNX()))
			case []float64:
				list := make([]float32, len(v))
				for i := range v {
					list[i] = float32(v[i])
				}
				d.attr(a.Name, list)
			default:
				d.attr(a.Name, v)
			}
		}
		d.outs(max(c.Results, 1))
	}
}

// isSmall reports whether the operands of a case have elements, and few.
func isSmall(c optest.Case) bool {
	n := 0
	for _, a := range c.Args {
		if a.IsZero() {
			continue
		}
		if a.Shape.NumElements() == 0 {
			return false
		}
		n += a.Shape.NumElements()
	}
	return n < 1<<12
}

// resized draws the sizes of the operands of a case: in half of the models
// those of the case, and else with one size replaced wherever it stands, if the
// operands with given values keep theirs and the shape rule allows it.
func (d *drawer) resized(def *op.Def, c optest.Case) [][]int {
	was, all := make([][]int, len(c.Args)), []int{}
	for i, a := range c.Args {
		if !a.IsZero() {
			was[i] = a.Shape.Sizes()
			all = append(all, was[i]...)
		}
	}
	if len(all) == 0 || d.chance(0.5) {
		return was
	}
	from, to := pick(d, all...), d.between(1, 2*d.size)
	attrs, err := op.NewAttrs(c.Attrs...)
	if err != nil {
		return was
	}
	sig := &op.Sig{Def: def, Attrs: attrs, Args: make([]op.Type, len(c.Args)), Results: make([]op.Type, max(c.Results, 1))}
	sizes := make([][]int, len(was))
	for i, a := range c.Args {
		if a.IsZero() {
			continue
		}
		sizes[i] = slices.Clone(was[i])
		for k, n := range sizes[i] {
			if n == from {
				sizes[i][k] = to
			}
		}
		if !opcases.IsAny(a) && !slices.Equal(sizes[i], was[i]) {
			return was
		}
		sig.Args[i] = op.Type{DType: a.DType, Shape: shape.MustOf(sizes[i]...)}
	}
	sig.Known = func(i int) ([]byte, bool) { return c.Args[i].Data, !c.Args[i].IsZero() && !opcases.IsAny(c.Args[i]) }
	if op.InferTypes(sig) != nil {
		return was
	}
	return sizes
}

// TestCases compares models drawn from the cases of every operator, whether or
// not it has a generator, in an opset that ONNX Runtime runs. NaN, infinities
// and extreme numbers are left to the generators, which know what an operator
// makes of them.
func TestCases(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	total := tally{}
	for _, s := range onnx.Operators() {
		draw := fromCases(s)
		if draw == nil {
			continue
		}
		opset := max(min(int(s.Till), 21), int(s.From))
		t.Run(s.Name, func(t *testing.T) {
			o := &operator{name: s.Name, from: opset, till: opset, ref: ref, tally: tally{}, draw: func(d *drawer) {
				d.special, d.mild, d.calm = false, true, true
				draw(d)
			}}
			o.compare(t)
			for k, n := range o.tally {
				total[k] += n
			}
		})
	}
	t.Log(total)
}
