package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

// threshold is a number with which others are compared: hardly any lies so near
// to it that a rounding decides.
const threshold = 0.013671875

// measured adds nodes that compute with sizes, or whose results have sizes that
// follow from data.
func (x *mixed) measured(a shaped) {
	rank := len(a.dims)
	axis := x.IntN(rank)
	last := rank - 1
	along := attr{"axis", int64(axis)}
	switch x.IntN(18) {
	case 0: // the first size, and all others as one
		x.node("Reshape", []string{a.name, x.node("Concat", []string{x.sized(a, 0), x.list([]int{1}, -1)}, attr{"axis", int64(0)})})
	case 1:
		x.node("Reshape", []string{a.name, x.node("Concat", []string{x.list([]int{1}, -1), x.sized(a, last)}, attr{"axis", int64(0)})})
	case 2: // all axes but the last one
		s := x.node("Shape", []string{a.name})
		all := x.node("Div", []string{x.reduced("ReduceProd", s, 0), x.sized(a, last)})
		x.node("Reshape", []string{a.name, x.node("Concat", []string{all, x.sized(a, last)}, attr{"axis", int64(0)})})
	case 3:
		fill := x.node("ConstantOfShape", []string{x.node("Shape", []string{a.name})}, attr{"value", &value{dt: x.dt, dims: []int{1}, data: encodeFloats(x.dt, 0.5)}})
		x.node(pick(x.drawer, "Add", "Mul", "Max"), []string{a.name, fill})
	case 4: // positions
		n := x.node("Squeeze", x.axesOf(13, x.sized(a, last), 0))
		if x.m.opset < 13 {
			x.lastNode().attrs = []attr{{"axes", []int64{0}}}
		}
		one := func(k int64) string { return x.value(dtype.I64, []int{}, encodeInts(dtype.I64, k), true).name }
		places := x.node("Range", []string{one(0), n, one(1)})
		places = x.node("Cast", []string{places}, attr{"to", int64(x.dt.ONNX())})
		x.node("Add", []string{a.name, x.node("Mul", []string{places, x.number(0.125)})})
	case 5: // the first half
		x.cut(a, axis, x.list([]int{1}, 0), x.node("Div", []string{x.node("Add", []string{x.sized(a, axis), x.list([]int{1}, 1)}), x.list([]int{1}, 2)}))
	case 6: // all but the first
		x.cut(a, axis, x.list([]int{1}, 1), x.sized(a, axis))
	case 7: // the last one
		x.node("Gather", []string{a.name, x.node("Sub", []string{x.sized(a, axis), x.list([]int{1}, 1)})}, along)
	case 8:
		x.node("Expand", []string{x.weight(1, 1), x.node("Shape", []string{a.name})})
	case 9: // those above zero, in a row
		x.node("Compress", []string{a.name, x.node("Greater", []string{x.node("Reshape", []string{a.name, x.list([]int{1}, -1)}), x.number(threshold)})})
	case 10:
		places := x.node("NonZero", []string{x.node("Greater", []string{a.name, x.number(threshold)})})
		if x.m.opset >= 12 {
			x.node("GatherND", []string{a.name, x.node("Transpose", []string{places}, attr{"perm", []int64{1, 0}})})
		}
	case 11: // products of rows with rows
		if rank < 2 {
			return
		}
		perm := make([]int64, rank)
		for i := range perm {
			perm[i] = int64(i)
		}
		perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
		scores := x.node("MatMul", []string{a.name, x.node("Transpose", []string{a.name}, attr{"perm", perm})})
		if x.m.opset >= 14 && x.chance(0.5) {
			scores = x.node("Trilu", []string{scores}, attr{"upper", int64(0)})
		}
		scores = x.node("Softmax", []string{scores}, attr{"axis", int64(rank - 1)})
		x.node("MatMul", []string{scores, a.name})
	case 12:
		k := x.list([]int{1}, 1)
		if x.chance(0.5) {
			k = x.sized(a, axis)
		}
		x.put("", "TopK", []string{a.name, k}, []string{x.name(), x.name()}, along)
	case 13:
		if x.m.opset >= 11 {
			x.node("CumSum", []string{a.name, x.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(axis)), true).name})
		}
	case 14: // twice as large
		if rank != 4 || x.m.opset < 11 {
			return
		}
		s := x.node("Shape", []string{a.name})
		s = x.node("Mul", []string{s, x.list([]int{4}, 1, 1, 2, int64(x.between(1, 2)))})
		x.put("", "Resize", []string{a.name, x.value(dtype.F32, []int{0}, nil, true).name, x.value(dtype.F32, []int{0}, nil, true).name, s},
			[]string{x.name()}, attr{"mode", pick(x.drawer, "nearest", "linear")}, attr{"coordinate_transformation_mode", "asymmetric"}, attr{"nearest_mode", "floor"})
	case 15:
		counts := make([]int64, rank)
		for i := range counts {
			counts[i] = 1
		}
		counts[axis] = 2
		x.node("Tile", []string{a.name, x.list([]int{rank}, counts...)})
	case 16:
		x.node("Reshape", []string{x.node("Flatten", []string{a.name}, along), x.node("Shape", []string{a.name})})
	default: // an axis more, and none
		x.put("", "Unsqueeze", x.axesOf(13, a.name, int64(axis)), []string{x.name()})
		if x.m.opset < 13 {
			x.lastNode().attrs = []attr{{"axes", []int64{int64(axis)}}}
		}
	}
}

func (x *mixed) lastNode() *node { return x.m.graph.nodes[len(x.m.graph.nodes)-1] }

// sized adds nodes that compute the size of an axis, as a list of one.
func (x *mixed) sized(a shaped, axis int) string {
	return x.node("Gather", []string{x.node("Shape", []string{a.name}), x.list([]int{1}, int64(axis))}, attr{"axis", int64(0)})
}

// axesOf returns the operands of a node that has its axes in an operand from
// that opset on.
func (x *mixed) axesOf(since int, name string, axes ...int64) []string {
	if x.m.opset < since {
		return []string{name}
	}
	return []string{name, x.list([]int{len(axes)}, axes...)}
}

// reduced adds a reduction of one axis, which stays.
func (x *mixed) reduced(op, name string, axis int64) string {
	y := x.node(op, x.axesOf(18, name, axis), attr{"keepdims", int64(1)})
	if x.m.opset < 18 {
		x.lastNode().attrs = append(x.lastNode().attrs, attr{"axes", []int64{axis}})
	}
	return y
}

// cut adds a slice of one axis.
func (x *mixed) cut(a shaped, axis int, from, till string) {
	if x.m.opset >= 10 {
		x.node("Slice", []string{a.name, from, till, x.list([]int{1}, int64(axis))})
	}
}
