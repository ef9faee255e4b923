//go:build !race

package pass_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The types of an instance take as many allocations for a program of any number
// of calls and of constants that are computed from sizes, where the shapes are
// in use already: the types, and the table of constants.
func TestTypesAllocations(t *testing.T) {
	if invariant.Enabled {
		t.Skip("skipped: builds that check take more")
	}
	const block = `
		%s_ = shape(%x_)
		%n_ = gather(%s_, @zero) {axis = 0}
		%t_ = concat(%n_, @two, @minus) {axis = 0}
		%y_ = reshape(%x_, %t_)
		%p_ = transpose(%y_) {perm = [0, 2, 1]}
		%q_ = softmax(%p_) {axis = -1}
		%d_ = mul(%n_, @two)
		%e_ = concat(%d_, @minus) {axis = 0}
		%f_ = reshape(%q_, %e_)
		%g_ = matmul(%f_, @w)
		%h_ = concat(%n_, @minus) {axis = 0}
		%x+ = reshape(%g_, %h_)`
	for _, blocks := range []int{1, 3} {
		text := "func @any(%x0: f32[n,4]) {\nweight @w: f32[2,2]\nweight @zero: i64[1]\nweight @two: i64[1]\nweight @minus: i64[1]\n"
		for i := range blocks {
			text += strings.NewReplacer("_", string(rune('0'+i)), "+", string(rune('1'+i))).Replace(block)
		}
		p, err := ir.Parse(text+"\nreturn %x"+string(rune('0'+blocks))+"\n}", op.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		i64 := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
		l := &loaded{program: p, constants: &weights.Overlay{Base: ir.WeightMap{"w": make([]byte, 16), "zero": i64(0), "two": i64(2), "minus": i64(-1)}}}
		typesOf := func(n int) []op.Type { return []op.Type{{DType: dtype.F32, Shape: shape.MustOf(n, 4)}} }
		ctx, err := l.specialise(typesOf(5))
		if err != nil {
			t.Fatal(err)
		}
		s, reason := ctx.Structure()
		if s == nil {
			t.Fatal(reason)
		}
		sizes := [][]op.Type{typesOf(7), typesOf(12)}
		var held []ir.Types // so that the shapes stay
		n := 0
		step := func() {
			n++
			types := s.Types(sizes[n%2], nil, &weights.Overlay{Base: s.Constants()})
			if types == nil {
				t.Fatal("got no instance")
			}
			if len(held) < 2 {
				held = append(held, types)
			}
		}
		allocs := testing.AllocsPerRun(20, step)
		for range 9 {
			allocs = min(allocs, testing.AllocsPerRun(20, step))
		}
		if allocs != 10 {
			t.Errorf("%d blocks: got %v allocations, want 10", blocks, allocs)
		}
	}
}
