package standard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// An Einsum becomes transposes, sums and matrix products: operands are taken
// one after the other into a product whose axes have labels. Of two operands
// the labels that both have and that are not needed later are the inner axis of
// a matrix product, those that both have and that are needed are its batch.

var einsumTable = map[string]lift.Operator{"Einsum": lift.Lifted(12, liftEinsum)}

// A label is a letter, or the number of an axis of the ellipsis counted from
// its end: -1 is the last.
type label int

// labelled is a value whose axes have labels, each once.
type labelled struct {
	v      *ir.Value
	labels []label
}

// maxTerms bounds the operands of one Einsum, and maxLetters its equation.
const maxTerms, maxLetters = 32, 256

func liftEinsum(n *lift.Node) {
	equation, ok := lift.Take[string](n, "equation")
	n.NoMoreAttrs()
	if !ok || len(equation) > maxLetters || len(n.Args) == 0 || len(n.Args) > maxTerms {
		n.Fail("got an equation of %d letters for %d operands, want one of up to %d for 1 to %d", len(equation), len(n.Args), maxLetters, maxTerms)
		return
	}
	if n.Operand(len(n.Args)) == nil {
		return
	}
	terms, result, err := parseEinsum(n, strings.ReplaceAll(equation, " ", ""))
	if err != nil {
		n.Fail("equation %q: %w", equation, err)
		return
	}
	dt := n.Args[0].Type.DType
	inner := dt
	if dt.IsInt() && dt.Size() < 4 {
		inner = dtype.I32 // sums wrap to the same bits
	}
	for i := range terms {
		if inner != dt {
			terms[i].v = n.Call("cast", []*ir.Value{terms[i].v}, op.Attr{Name: "to", Value: inner})
		}
		terms[i] = diagonals(n, terms[i])
	}
	product := onlyNeeded(n, terms[0], result, terms[1:])
	for i := 1; i < len(terms) && n.Err == nil; i++ {
		rest := terms[i+1:]
		product = times(n, product, onlyNeeded(n, terms[i], append(slices.Clone(result), product.labels...), rest), result, rest)
	}
	if n.Err != nil {
		return
	}
	if inner != dt {
		product.v = n.Call("cast", []*ir.Value{product.v}, op.Attr{Name: "to", Value: dt})
	}
	finishOrder(n, product, result)
}

// finishOrder ends the node with the axes in the order of labels.
func finishOrder(n *lift.Node, x labelled, order []label) {
	if slices.Equal(x.labels, order) {
		n.Finish("identity", []*ir.Value{x.v})
		return
	}
	n.Finish("transpose", []*ir.Value{x.v}, lift.IntsAttr("perm", x.places(order)))
}

// places returns where the labels are among the axes of x.
func (x labelled) places(of []label) []int64 {
	at := make([]int64, len(of))
	for i, l := range of {
		at[i] = int64(slices.Index(x.labels, l))
	}
	return at
}

// parseEinsum returns the operands with their labels, which may repeat, and
// the labels of the result.
func parseEinsum(n *lift.Node, equation string) (terms []labelled, result []label, err error) {
	left, right, explicit := strings.Cut(equation, "->")
	words := strings.Split(left, ",")
	if len(words) != len(n.Args) {
		return nil, nil, fmt.Errorf("got %d terms for %d operands, want as many", len(words), len(n.Args))
	}
	count := map[label]int{}
	hidden := 0 // axes of the longest ellipsis
	for i, word := range words {
		rank, known := n.Rank(i)
		if !known {
			return nil, nil, fmt.Errorf("an operand of unknown rank: %w", op.ErrUnsupported)
		}
		letters := len(strings.Replace(word, "...", "", 1))
		axes := rank - letters
		if axes < 0 || axes > 0 && !strings.Contains(word, "...") {
			return nil, nil, fmt.Errorf("got term %q for operand %d of %s, want a letter per axis: %w", word, i, n.Args[i].Type, shape.ErrShape)
		}
		labels, err := labelsOf(word, axes)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range labels {
			count[l]++
		}
		hidden = max(hidden, axes)
		terms = append(terms, labelled{n.Args[i], labels})
	}
	if !explicit {
		for i := hidden; i > 0; i-- {
			result = append(result, label(-i))
		}
		for l := label(0); l < 128; l++ {
			if count[l] == 1 {
				result = append(result, l)
			}
		}
		return terms, result, nil
	}
	if result, err = labelsOf(right, hidden); err != nil {
		return nil, nil, err
	}
	for i, l := range result {
		if count[l] == 0 || slices.Contains(result[:i], l) {
			return nil, nil, fmt.Errorf("got result %q, want each letter once and of an operand", right)
		}
	}
	return terms, result, nil
}

// labelsOf returns the labels of a term whose ellipsis stands for so many axes.
func labelsOf(word string, axes int) ([]label, error) {
	var labels []label
	before, after, found := strings.Cut(word, "...")
	for _, c := range before {
		labels = append(labels, label(c))
	}
	if found {
		for i := axes; i > 0; i-- {
			labels = append(labels, label(-i))
		}
	}
	for _, c := range after {
		labels = append(labels, label(c))
	}
	for _, l := range labels {
		if l >= 0 && (l < 'A' || l > 'z' || l > 'Z' && l < 'a') {
			return nil, fmt.Errorf("got %q in term %q, want letters and one ellipsis", rune(l), word)
		}
	}
	return labels, nil
}

// diagonals leaves of axes with the same label one, of equal indices: the two
// are laid out as one axis, of which every element past a row is one. Sizes
// that are not known at load are compared by the reshape.
func diagonals(n *lift.Node, x labelled) labelled {
	for n.Err == nil {
		first, second := -1, -1
		for i, l := range x.labels {
			if j := slices.Index(x.labels, l); j < i {
				first, second = j, i
				break
			}
		}
		if first < 0 {
			return x
		}
		a, b := extents(n, x.v, first, first+1), extents(n, x.v, second, second+1)
		if a.value == nil && b.value == nil && a.size != b.size {
			n.Fail("got %s with one letter for axes %d and %d, want equal sizes: %w", x.v.Type, first, second, shape.ErrShape)
			return x
		}
		if a.value != nil && b.value == nil {
			a = b
		}
		rest := slices.Delete(slices.Clone(x.labels), second, second+1)
		rest = slices.Delete(rest, first, first+1)
		var perm, flat []int64
		for i := range x.labels {
			if i != first && i != second {
				perm, flat = append(perm, int64(i)), append(flat, 0)
			}
		}
		v := x.v
		if perm = append(perm, int64(first), int64(second)); !slices.IsSorted(perm) {
			v = n.Call("transpose", []*ir.Value{v}, lift.IntsAttr("perm", perm))
		}
		all, step := a.square(n)
		target := n.Ints(append(flat, all.size))
		if all.value != nil {
			target = n.Call("concat", []*ir.Value{n.Ints(flat), all.value}, lift.IntAttr("axis", 0))
		}
		v = n.Call("reshape", []*ir.Value{v, target})
		v = n.Call("slice", []*ir.Value{v, n.Ints([]int64{0}), all.list(n), n.Ints([]int64{-1}), step.list(n)})
		x = labelled{v, append(rest, x.labels[first])}
	}
	return x
}

// onlyNeeded sums over axes whose label neither the result nor a later operand
// has.
func onlyNeeded(n *lift.Node, x labelled, result []label, later []labelled) labelled {
	var axes []int64
	var kept []label
	for i, l := range x.labels {
		if slices.Contains(result, l) || anyHas(later, l) {
			kept = append(kept, l)
		} else {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) == 0 || n.Err != nil {
		return x
	}
	return labelled{n.Call("reduce_sum", []*ir.Value{x.v, n.Ints(axes)}, lift.IntAttr("keepdims", 0)), kept}
}

func anyHas(list []labelled, l label) bool {
	return slices.ContainsFunc(list, func(x labelled) bool { return slices.Contains(x.labels, l) })
}

// times multiplies two operands and sums over the labels that are not needed
// any more.
func times(n *lift.Node, x, y labelled, result []label, later []labelled) labelled {
	var batch, inner, left, right []label
	for _, l := range x.labels {
		switch {
		case !slices.Contains(y.labels, l):
			left = append(left, l)
		case slices.Contains(result, l) || anyHas(later, l):
			batch = append(batch, l)
		default:
			inner = append(inner, l)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			right = append(right, l)
		}
	}
	if len(inner) == 0 {
		all := slices.Concat(batch, left, right)
		return labelled{n.Call("mul", []*ir.Value{spread(n, x, all), spread(n, y, all)}), all}
	}
	a := grouped(n, ordered(n, x, slices.Concat(batch, left, inner)), len(batch), len(left))
	b := grouped(n, ordered(n, y, slices.Concat(batch, inner, right)), len(batch), len(inner))
	v := n.Call("matmul", []*ir.Value{a, b})
	if len(left) != 1 || len(right) != 1 {
		v = ungrouped(n, v, x, y, batch, left, right)
	}
	return labelled{v, slices.Concat(batch, left, right)}
}

// ordered brings the axes into the order of labels, which has all of them.
func ordered(n *lift.Node, x labelled, order []label) *ir.Value {
	if n.Err != nil || slices.Equal(x.labels, order) {
		return x.v
	}
	return n.Call("transpose", []*ir.Value{x.v}, lift.IntsAttr("perm", x.places(order)))
}

// spread brings the axes into the order of labels, with axes of size 1 for
// those that x does not have.
func spread(n *lift.Node, x labelled, all []label) *ir.Value {
	var order []label
	var missing []int64
	for i, l := range all {
		if slices.Contains(x.labels, l) {
			order = append(order, l)
		} else {
			missing = append(missing, int64(i))
		}
	}
	v := ordered(n, x, order)
	if len(missing) == 0 {
		return v
	}
	return n.Call("unsqueeze", []*ir.Value{v, n.Ints(missing)})
}

// grouped makes one axis of the rows axes after the first keep ones, and one of
// those that are left.
func grouped(n *lift.Node, v *ir.Value, keep, rows int) *ir.Value {
	if n.Err != nil || v.Type.Shape == nil {
		return v
	}
	rank := v.Type.Shape.Rank()
	if rows == 1 && rank == keep+2 {
		return v
	}
	var sizes []extent
	for i := range keep {
		sizes = append(sizes, extents(n, v, i, i+1))
	}
	return reshaped(n, v, append(sizes, extents(n, v, keep, keep+rows), extents(n, v, keep+rows, rank)))
}

// ungrouped splits the rows and columns of a matrix product into the axes that
// they were made from.
func ungrouped(n *lift.Node, v *ir.Value, x, y labelled, batch, left, right []label) *ir.Value {
	of := func(x labelled, l label) extent {
		i := slices.Index(x.labels, l)
		return extents(n, x.v, i, i+1)
	}
	var sizes []extent
	for _, l := range batch {
		a, b := of(x, l), of(y, l)
		switch { // one of them may be 1 and the other not
		case a.value == nil && a.size != 1:
		case b.value == nil && b.size != 1, a.value == nil:
			a = b
		case b.value != nil:
			a = extent{value: n.Call("max", []*ir.Value{a.value, b.value})}
		}
		sizes = append(sizes, a)
	}
	for _, l := range left {
		sizes = append(sizes, of(x, l))
	}
	for _, l := range right {
		sizes = append(sizes, of(y, l))
	}
	return reshaped(n, v, sizes)
}

// extent is a number of elements: value where it is not known at load, a list
// of one number.
type extent struct {
	size  int64
	value *ir.Value
}

// list is the extent as an operand, a list of one number.
func (e extent) list(n *lift.Node) *ir.Value {
	if e.value == nil {
		return n.Ints([]int64{e.size})
	}
	return e.value
}

// square is how many elements a matrix of that many rows and columns has, and
// how far those of its diagonal are apart.
func (e extent) square(n *lift.Node) (elements, step extent) {
	if e.value == nil {
		return extent{size: e.size * e.size}, extent{size: e.size + 1}
	}
	one := n.Ints([]int64{1})
	return extent{value: n.Call("mul", []*ir.Value{e.value, e.value})}, extent{value: n.Call("add", []*ir.Value{e.value, one})}
}

// extents is how many elements the axes from lo to hi have together.
func extents(n *lift.Node, v *ir.Value, lo, hi int) extent {
	if n.Err != nil {
		return extent{}
	}
	size := int64(1)
	for i := lo; i < hi; i++ {
		d, ok := v.Type.Shape.Dim(i).Size()
		if !ok {
			list := n.Call("shape", []*ir.Value{v}, lift.IntAttr("start", int64(lo)), lift.IntAttr("end", int64(hi)))
			if hi > lo+1 {
				list = n.Call("reduce_prod", []*ir.Value{list})
			}
			return extent{value: list}
		}
		size *= int64(d) // a static part of a shape: its product is in range, or 0
	}
	return extent{size: size}
}

// reshaped returns v with axes of the given sizes.
func reshaped(n *lift.Node, v *ir.Value, sizes []extent) *ir.Value {
	var parts []*ir.Value
	var known []int64
	flush := func() {
		if len(known) > 0 {
			parts, known = append(parts, n.Ints(known)), nil
		}
	}
	for _, s := range sizes {
		if s.value == nil {
			known = append(known, s.size)
			continue
		}
		flush()
		parts = append(parts, s.value)
	}
	flush()
	var target *ir.Value
	switch {
	case n.Err != nil:
		return v
	case len(parts) == 0:
		target = n.Ints(nil)
	case len(parts) == 1:
		target = parts[0]
	default:
		target = n.Call("concat", parts, lift.IntAttr("axis", 0))
	}
	return n.Call("reshape", []*ir.Value{v, target}, lift.IntAttr("allowzero", 1))
}
