package compute

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// typed makes a call on operands without bytes.
func typed(t *testing.T, name string, a op.Attrs, results int, known func(int) ([]byte, bool), args ...op.Type) *op.Call {
	t.Helper()
	s := &op.Sig{Def: op.Builtin().Lookup(name), Attrs: a, Args: args, Results: make([]op.Type, results), Known: known}
	if err := op.InferTypes(s); err != nil {
		t.Fatal(err)
	}
	c := &op.Call{Sig: s, In: make([]op.Arg, len(args)), Out: make([]op.Arg, results)}
	for i, a := range args {
		c.In[i].Type = a
	}
	for i, r := range s.Results {
		c.Out[i].Type = r
	}
	return c
}

// Binding a call takes memory for its operands' number, not for their size:
// types are declared in files, bytes are not there yet.
func TestBindOfLargeTypes(t *testing.T) {
	large := op.Type{DType: dtype.F32, Shape: shape.MustOf(1, 1, 1<<40)}
	pads := ints(0, 0, 1, 0, 0, 1)
	scales := arg([]float32{1, 1, 2}, 3)
	for _, c := range []struct {
		name string
		call *op.Call
		want error
	}{
		{"concat", typed(t, "concat", attrs("axis", int64(2)), 1, nil, large, large), nil},
		{"split", typed(t, "split", attrs("axis", int64(2)), 2, nil, large), nil},
		{"pad", typed(t, "pad", nil, 1, func(i int) ([]byte, bool) { return pads.Data, i == 1 }, large, pads.Type), op.ErrUnsupported},
		{"resize", typed(t, "resize", attrs("mode", "linear"), 1, func(i int) ([]byte, bool) { return scales.Data, i == 2 }, large, op.Type{}, scales.Type), op.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Bind(c.call)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) {
				t.Errorf("got the error %v, want %v", err, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
				t.Errorf("got %d bytes allocated, want at most 1 MiB", took)
			}
		})
	}
}

// Copies of all sizes in one task: small ones together, large ones in parts.
func TestConcatOfMixedSizes(t *testing.T) {
	sizes := []int{3, 1, copySpan, 0, 5, 2*copySpan + 7, copySpan - 1, copySpan - 1, 2, 0, 4*copySpan + 1, 1}
	var parts []op.Arg
	var want []byte
	for i, n := range sizes {
		x := random(dtype.U8, uint64(i), 0, 255, n)
		parts = append(parts, x)
		want = append(want, x.Data...)
	}
	whole := run(t, call(t, "concat", attrs("axis", int64(0)), 1, parts...))[0]
	if !slices.Equal(whole.Data, want) {
		t.Error("concat: got other bytes than those of the parts")
	}
	list := make([]int64, len(sizes))
	for i, n := range sizes {
		list[i] = int64(n)
	}
	back := run(t, call(t, "split", attrs("axis", int64(0)), len(sizes), whole, ints(list...)))
	for i := range back {
		if !slices.Equal(back[i].Data, parts[i].Data) {
			t.Errorf("split: part %d of %d bytes: got other bytes", i, sizes[i])
		}
	}
}

// Results that no cache holds are written past the caches, and in the operand's
// bytes otherwise: run does both.
func TestBinaryOfLargeTensors(t *testing.T) {
	const rows, width = 1 << 10, 8<<10 + 3 // more than streamBytes, and no whole number of tiles
	x := arg(values[float32](1, rows*width, -1, 1), rows, width)
	for _, other := range []op.Arg{arg(values[float32](2, rows*width, -1, 1), rows, width), arg(values[float32](3, width, -1, 1), width), scalar(float32(0.25))} {
		got := run(t, call(t, "sub", nil, 1, x, other))[0]
		a, b, d := view[float32](x.Data), view[float32](other.Data), view[float32](got.Data)
		for i := range d {
			if want := a[i] - b[i%len(b)]; d[i] != want {
				t.Fatalf("operand of shape %s, element %d: got %v, want %v", other.Shape, i, d[i], want)
			}
		}
	}
}
