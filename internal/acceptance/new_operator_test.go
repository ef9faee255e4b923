package acceptance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/standard"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
	"github.com/tenure-go/tenure/shape"
)

// This file adds two operators that ONNX does not have, in the order of "Add an
// operator" in CONTRIBUTING and with the functions that the operators of the
// table use: CumMax, which has a kernel, and CumRange, which the import makes
// of others.

// The declaration: a row of a family in package op.
var cumMax = &op.Def{
	Name: "cum_max", ONNX: "CumMax", Doc: "returns the maximum of the elements up to each along an axis",
	MinArgs: 1, MaxArgs: 1, Attrs: []op.AttrDef{{Name: "axis", Kind: op.Int, Default: int64(-1)}, {Name: "reverse", Kind: op.Int, Default: int64(0)}},
	Infer: inferCumMax, Alias: op.SameAs(0),
}

func inferCumMax(s *op.Sig) error {
	x := s.Args[0]
	if x.DType != dtype.F32 && x.DType != dtype.I64 {
		return fmt.Errorf("operand 0: got %s, want f32 or i64: %w", x, dtype.ErrDType)
	}
	if x.Shape != nil {
		if axis, rank := s.Int("axis"), int64(x.Shape.Rank()); axis < -rank || axis >= rank {
			return fmt.Errorf("axis: got %d for %s, want %d to %d: %w", axis, x, -rank, rank-1, shape.ErrShape)
		}
	}
	s.Results[0] = x
	return nil
}

// The rows of the import: one in a table of internal/onnx/standard each.
var cumTable = map[string]lift.Operator{
	"CumMax":   lift.Since(18),
	"CumRange": lift.Lifted(18, liftCumRange),
}

// liftCumRange subtracts the running minimum, which is -CumMax(-x), from the
// running maximum.
func liftCumRange(n *lift.Node) {
	axis := lift.TakeOr(n, "axis", int64(-1))
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	along := lift.IntAttr("axis", axis)
	most := n.Call("cum_max", []*ir.Value{x}, along)
	least := n.Call("cum_max", []*ir.Value{n.Call("neg", []*ir.Value{x})}, along)
	n.Finish("add", []*ir.Value{most, least})
}

// The binder: in a family of internal/compute.
func init() { compute.Register(cumMax, bindCumMax) }

func bindCumMax(c *op.Call) (compute.Kernel, error) {
	if c.In[0].DType == dtype.I64 {
		return &runningMax[int64]{reverse: c.Int("reverse") != 0}, nil
	}
	return &runningMax[float32]{reverse: c.Int("reverse") != 0}, nil
}

// runningMax computes one block of an outer position per tile.
type runningMax[T int64 | float32] struct {
	reverse     bool
	size, inner int
}

func (k *runningMax[T]) Refill(t *compute.Task) error {
	sizes := t.Call.Out[0].Shape.Sizes()
	axis := int(t.Call.Int("axis"))
	if axis < 0 {
		axis += len(sizes)
	}
	k.size, k.inner, t.Tiles = sizes[axis], 1, 1
	for _, n := range sizes[axis+1:] {
		k.inner *= n
	}
	for _, n := range sizes[:axis] {
		t.Tiles *= n
	}
	return nil
}

func (k *runningMax[T]) Tile(t *compute.Task, tile int, _ []byte) {
	n := k.size * k.inner
	cumMaxKernel(elementsOf[T](t.Call.Out[0].Data)[tile*n:][:n], elementsOf[T](t.Call.In[0].Data)[tile*n:][:n], k.size, k.inner, k.reverse)
}

func elementsOf[T int64 | float32](data []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(zero)))
}

// The kernel: in a family of internal/kernel. dst may be src.
func cumMaxKernel[T int64 | float32](dst, src []T, size, inner int, reverse bool) {
	for i := range inner {
		at, step := i, inner
		if reverse {
			at, step = i+(size-1)*inner, -inner
		}
		for k, most := 0, T(0); k < size; k, at = k+1, at+step {
			if v := src[at]; k == 0 || v > most {
				most = v
			}
			dst[at] = most
		}
	}
}

// The reference: in internal/kernel/ref. It looks at all elements again for
// each result.
func refCumMax[T int64 | float32](x []T, sizes []int, axis int, reverse bool) []T {
	inner := 1
	for _, n := range sizes[axis+1:] {
		inner *= n
	}
	out := make([]T, len(x))
	for i := range x {
		place := i / inner % sizes[axis]
		out[i] = x[i]
		for k := range sizes[axis] {
			if k < place && !reverse || k > place && reverse {
				out[i] = max(out[i], x[i+(k-place)*inner])
			}
		}
	}
	return out
}

// The cases: in a family of internal/opcases.
func cumMaxCases() []optest.Case {
	attrs := func(axis, reverse int64) []op.Attr {
		return []op.Attr{{Name: "axis", Value: axis}, {Name: "reverse", Value: reverse}}
	}
	f32, i64 := optest.Random(dtype.F32, 3, 4, 5), optest.Random(dtype.I64, 6, 2)
	return []optest.Case{
		{Args: []optest.Operand{f32}, Want: []optest.Operand{optest.Of(refCumMax(elementsOf[float32](f32.Data), []int{3, 4, 5}, 2, false), 3, 4, 5)}},
		{Args: []optest.Operand{f32}, Attrs: attrs(1, 1), Want: []optest.Operand{optest.Of(refCumMax(elementsOf[float32](f32.Data), []int{3, 4, 5}, 1, true), 3, 4, 5)}},
		{Args: []optest.Operand{i64}, Attrs: attrs(-2, 0), Want: []optest.Operand{optest.Of(refCumMax(elementsOf[int64](i64.Data), []int{6, 2}, 0, false), 6, 2)}},
		{Args: []optest.Operand{optest.Random(dtype.F32, 0, 3)}, Want: []optest.Operand{optest.Of([]float32{}, 0, 3)}},
		{Args: []optest.Operand{optest.Random(dtype.F32, 3)}, Attrs: attrs(1, 0), Fails: "axis: got 1 for f32[3], want -1 to 0"},
		{Args: []optest.Operand{optest.Random(dtype.I8, 3)}, Fails: "got i8[3], want f32 or i64"},
	}
}

// An operator keeps its declaration and agrees with its reference.
func TestNewOperatorCases(t *testing.T) {
	if err := optest.Check(cumMax, cumMaxCases()...); err != nil {
		t.Error(err)
	}
}

// cumModel reads a model with both operators. The rows of an x that keep names
// go through CumMax, so that their number depends on data.
func cumModel(t *testing.T) *tenure.Model {
	t.Helper()
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "rows", "columns")
	g.Input("keep", onnxtest.Bool, "rows")
	g.Node("Compress", []string{"x", "keep"}, []string{"kept"}, onnxtest.Int("axis", 0))
	g.Node("CumMax", []string{"kept"}, []string{"most"}, onnxtest.Int("axis", 0), onnxtest.Int("reverse", 1))
	g.Node("CumRange", []string{"x"}, []string{"range"}, onnxtest.Int("axis", 1))
	g.Output("most")
	g.Output("range")
	file := g.File()
	proto, err := wire.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := op.Builtin().With(cumMax)
	if err != nil {
		t.Fatal(err)
	}
	store := weights.New(weights.Options{})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	tables := lift.Tables{"": lift.Merge(standard.Table(), cumTable)}
	read, err := lift.Import(proto, lift.Options{Registry: registry, Operators: tables, Weights: store, FileSize: len(file)})
	if err != nil || len(read.Missing) > 0 {
		t.Fatalf("got error %v and missing operators %v, want none", err, read.Missing)
	}
	m, err := tenure.LoadProgram(read.Program, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A plan runs the operators for several shapes, and for numbers of rows that
// only the data says.
func TestNewOperatorInModel(t *testing.T) {
	memorytest.Check(t)
	m := cumModel(t)
	s := modeltest.Session(t, m)
	for _, sizes := range [][]int{{4, 3}, {7, 5}, {1, 1}} {
		rows, columns := sizes[0], sizes[1]
		data := cumNumbers(rows * columns)
		for _, every := range []int{1, 2, 3, rows + 1} { // the last one keeps none
			keep, kept := make([]bool, rows), []float32{}
			for i := range keep {
				if keep[i] = (i+1)%every == 0; keep[i] {
					kept = append(kept, data[i*columns:(i+1)*columns]...)
				}
			}
			out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, data, rows, columns), "keep": modeltest.Of(t, keep, rows)})
			n := len(kept) / columns
			if got, want := modeltest.Values(t, out["most"]), refCumMax(kept, []int{n, columns}, 0, true); !slices.Equal(got, want) {
				t.Errorf("CumMax of %d rows of %d: got %v, want %v", n, columns, got, want)
			}
			if got, want := modeltest.Values(t, out["range"]), refCumRange(data, sizes); !slices.Equal(got, want) {
				t.Errorf("CumRange of %v: got %v, want %v", sizes, got, want)
			}
		}
		p, err := s.Plan(t.Context(), tenure.Shapes{"x": sizes, "keep": sizes[:1]})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Check(p); err != nil {
			t.Error(err)
		}
	}
}

// One call on tensors runs the same kernel, in the bytes of an operand that is
// given up.
func TestNewOperatorEagerly(t *testing.T) {
	memorytest.Check(t)
	data := cumNumbers(24)
	x := modeltest.Of(t, data, 2, 3, 4)
	y, err := eager.Call(cumMax).On(x).Int("axis", 1).Run()
	if err != nil {
		t.Fatal(err)
	}
	defer y.Release()
	if got, want := modeltest.Values(t, y), refCumMax(data, []int{2, 3, 4}, 1, false); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	at := modeltest.Address(y)
	z, err := eager.Call(cumMax).On(y.Donate()).Int("axis", 2).Int("reverse", 1).Run()
	if err != nil {
		t.Fatal(err)
	}
	defer z.Release()
	if want := refCumMax(refCumMax(data, []int{2, 3, 4}, 1, false), []int{2, 3, 4}, 2, true); !slices.Equal(modeltest.Values(t, z), want) || modeltest.Address(z) != at {
		t.Errorf("got %v in the operand's bytes: %t; want %v there", modeltest.Values(t, z), modeltest.Address(z) == at, want)
	}
	if _, err := eager.Call(cumMax).On(modeltest.Of(t, []int8{1}, 1)).Run(); err == nil || !strings.Contains(err.Error(), "cum_max: operand 0: got i8[1]") {
		t.Errorf("got error %v, want that of the shape rule", err)
	}
}

// cumNumbers returns n numbers that go up and down.
func cumNumbers(n int) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i*7%11) - 5
	}
	return data
}

// refCumRange is the running maximum less the running minimum along the rows of
// a matrix.
func refCumRange(x []float32, sizes []int) []float32 {
	out := make([]float32, len(x))
	for i := range x {
		row := x[i/sizes[1]*sizes[1] : i+1]
		out[i] = slices.Max(row) - slices.Min(row)
	}
	return out
}
