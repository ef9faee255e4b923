package tenure_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// anyLength has sizes from two inputs: a product, a sum that may broadcast, a
// target of a reshape that is computed, and a part of a value.
const anyLength = `
	func @any(%x: f32[n,4], donate %y: f32[m,4]) {
		weight @w: f32[4,3]
		weight @b: f32[3]
		weight @zero: i64[1]
		weight @two: i64[1]
		weight @minus: i64[1]
		%p = matmul(%x, @w)
		%q = add(%p, @b)
		%r = relu(%q)
		%s = shape(%y)
		%m = gather(%s, @zero) {axis = 0}
		%t = concat(@two, %m, @minus) {axis = 0}
		%yx = add(%y, %x)
		%e = exp(%yx)
		%d = concat(%y, %y) {axis = 0}
		%v = reshape(%d, %t)
		%g = relu(%v)
		return %r, %e, %g
	}`

func floatsOf(values ...float32) (data []byte) {
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

func anyLengthProgram() (*ir.Program, ir.WeightMap) {
	i64 := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	return must(ir.Parse(anyLength, op.Builtin())), ir.WeightMap{"w": floatsOf(1, -2, 3, 0, 1, 1, -1, 2, 0, 1, 1, 1), "b": floatsOf(1, 0, -1),
		"zero": i64(0), "two": i64(2), "minus": i64(-1)}
}

// TestStructures runs sessions of one model at sizes that are equal, unequal, 1
// and 0, in mixed order, and compares with the interpreter.
func TestStructures(t *testing.T) {
	memorytest.Check(t)
	p, table := anyLengthProgram()
	m := must(tenure.LoadProgram(p, table))
	defer m.Close()
	sessions := []*tenure.Session{must(m.NewSession()), must(m.NewSession(tenure.WithThreads(1)))}
	for _, s := range sessions {
		defer s.Close()
	}
	for round, n := range [][2]int{{5, 5}, {3, 3}, {1, 3}, {7, 7}, {1, 5}, {7, 1}, {3, 1}, {0, 0}, {5, 5}, {1, 1}, {11, 11}} {
		args, given := make([]op.Arg, 2), make([]*tensor.Tensor, 2)
		for i, rows := range n {
			values := make([]float32, rows*4)
			for k := range values {
				values[k] = float32((k*3+i)%5 - 2)
			}
			args[i] = op.Arg{Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(rows, 4)}, Data: floatsOf(values...)}
			given[i] = must(tensor.Of(values, rows, 4))
		}
		want := must((&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, args...))
		out := must(sessions[round%2].Run(context.Background(), tenure.Inputs{"x": given[0], "y": given[1]}))
		for i, info := range m.Outputs() {
			if got := floatsOf(must(tensor.Values[float32](out[info.Name]))...); !bytes.Equal(got, want[i].Data) {
				t.Errorf("%v: output %q: got % x, want % x", n, info.Name, got, want[i].Data)
			}
		}
		for _, x := range given {
			x.Release()
		}
		out.Release()
	}
	f := m.Structures()
	if f.Instances < 5 || f.Kept < 3 || f.Instances+f.Kept != f.Compiled || f.Bytes == 0 || len(f.Pinned) > 0 || f.Evictions > 0 {
		t.Errorf("got %+v, want 3 structures or more, and 5 instances or more of them", f)
	}
}

// TestPlansOfInstances compares the plans of a model that has met other sizes
// before with those of a model that has not.
func TestPlansOfInstances(t *testing.T) {
	memorytest.Check(t)
	p, table := anyLengthProgram()
	m := must(tenure.LoadProgram(p, table))
	defer m.Close()
	for _, n := range [][2]int{{5, 5}, {3, 3}, {7, 1}, {11, 1}, {1, 3}, {1, 9}, {64, 64}} {
		shapes := tenure.Shapes{"x": {n[0], 4}, "y": {n[1], 4}}
		got := must(m.Plan(context.Background(), shapes))
		fresh := must(tenure.LoadProgram(p, table))
		want := must(fresh.Plan(context.Background(), shapes))
		if err := fresh.Check(got); err != nil {
			t.Errorf("%v: the plan of an instance: %v", n, err)
		}
		fresh.Close()
		if !reflect.DeepEqual(got.Steps, want.Steps) || !reflect.DeepEqual(got.InPlace, want.InPlace) || !reflect.DeepEqual(got.Declined, want.Declined) ||
			!reflect.DeepEqual(got.Copies, want.Copies) || got.Model != want.Model || got.ArenaBytes > want.ArenaBytes*21/20 {
			t.Errorf("%v: got the plan\n%+v\nwant\n%+v", n, got, want)
		}
	}
	if f := m.Structures(); f.Instances != 4 {
		t.Errorf("got %+v, want 4 instances", f)
	}
}
