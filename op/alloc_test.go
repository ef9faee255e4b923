package op_test

import (
	"encoding/binary"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Shape rules of calls whose operands have sizes allocate nothing where the
// shapes that they find exist: sizes that a model has not met run all of them.
func TestShapeRulesDoNotAllocate(t *testing.T) {
	f32 := func(sizes ...int) op.Type { return op.Type{DType: dtype.F32, Shape: shape.MustOf(sizes...)} }
	list := func(values ...int64) (op.Type, []byte) {
		var data []byte
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
		return op.Type{DType: dtype.I64, Shape: shape.MustOf(len(values))}, data
	}
	integer := func(name string, v int64) op.Attr { return op.Attr{Name: name, Value: v} }
	for _, c := range []struct {
		name    string
		attrs   op.Attrs
		args    []op.Type
		lists   [][]int64 // further operands, of known value
		results int
	}{
		{name: "matmul", args: []op.Type{f32(2, 1, 5, 7), f32(3, 7, 9)}},
		{name: "matmul", args: []op.Type{f32(7), f32(3, 7, 9)}},
		{name: "gemm", attrs: op.Attrs{integer("transB", 1)}, args: []op.Type{f32(5, 7), f32(9, 7), f32(9)}},
		{name: "fused_matmul", args: []op.Type{f32(5, 7), f32(7, 9), f32(9), f32(5, 9)}},
		{name: "add", args: []op.Type{f32(2, 5, 7), f32(7)}},
		{name: "softmax", args: []op.Type{f32(5, 7)}},
		{name: "concat", attrs: op.Attrs{integer("axis", 1)}, args: []op.Type{f32(2, 5, 7), f32(2, 1, 7)}},
		{name: "split", attrs: op.Attrs{integer("axis", -1)}, args: []op.Type{f32(2, 5, 9)}, results: 3},
		{name: "split", args: []op.Type{f32(9, 5)}, lists: [][]int64{{4, 5}}, results: 2},
		{name: "reshape", args: []op.Type{f32(2, 5, 8)}, lists: [][]int64{{0, -1, 4, 2}}},
		{name: "transpose", attrs: op.Attrs{{Name: "perm", Value: []int64{0, 2, 1}}}, args: []op.Type{f32(2, 5, 8)}},
		{name: "squeeze", args: []op.Type{f32(2, 1, 8)}, lists: [][]int64{{1}}},
		{name: "unsqueeze", args: []op.Type{f32(2, 8)}, lists: [][]int64{{1, 3}}},
		{name: "flatten", args: []op.Type{f32(2, 5, 8)}},
		{name: "slice", args: []op.Type{f32(2, 5, 8)}, lists: [][]int64{{1}, {4}, {1}, {2}}},
		{name: "expand", args: []op.Type{f32(5, 1)}, lists: [][]int64{{2, 1, 8}}},
		{name: "gather", attrs: op.Attrs{integer("axis", 1)}, args: []op.Type{f32(2, 5, 8), {DType: dtype.I64, Shape: shape.MustOf(3)}}},
		{name: "reduce_mean", args: []op.Type{f32(2, 5, 8)}, lists: [][]int64{{-1}}},
		{name: "shape", args: []op.Type{f32(2, 5, 8)}},
	} {
		known := make([][]byte, len(c.args), 8)
		for _, values := range c.lists {
			typ, data := list(values...)
			c.args, known = append(c.args, typ), append(known, data)
		}
		def := op.Builtin().Lookup(c.name)
		s := &op.Sig{Def: def, Attrs: c.attrs, Args: c.args, Results: make([]op.Type, max(c.results, 1)),
			Known: func(arg int) ([]byte, bool) { return known[arg], known[arg] != nil }}
		var held []op.Type // so that the shapes stay
		n := testing.AllocsPerRun(20, func() {
			if err := def.Infer(s); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if held == nil {
				held = append(held, s.Results...)
			}
			for arg := range s.Args {
				s.AliasOf(arg, len(s.Results)-1)
			}
		})
		if n != 0 {
			t.Errorf("%s of %v: got %v allocations, want none", c.name, c.args, n)
		}
	}
}
