package acceptance

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

var everySize = flag.Bool("everysize", false, "TestUpTo runs every size, not some, of a wider encoder, which takes minutes")

// transformer is a program of attention and two products per layer. With a
// past, each layer has its keys and values of earlier tokens as inputs and all
// of them as outputs. With batch, the first dimension is open too.
func transformer(t testing.TB, layers, width, heads int, past, batch bool) *tenure.Model {
	t.Helper()
	lead, first, open := []int64(nil), int64(0), []shape.Dim(nil) // of the batch
	if batch {
		lead, first, open = []int64{0}, 1, []shape.Dim{shape.Sym("batch")}
	}
	of := func(list ...int64) []int64 { // axes after the batch
		axes := slices.Clone(lead)
		for _, a := range list {
			axes = append(axes, a+first)
		}
		return axes
	}
	size := width / heads
	table := ir.WeightMap{}
	g := ir.NewBuilder("transformer", op.Builtin())
	typed := func(dims ...shape.Dim) op.Type {
		return op.Type{DType: dtype.F32, Shape: modeltest.Must(shape.FromDims(dims...))}
	}
	weight := func(rows, columns int) *ir.Value {
		w := g.Weight("", typed(shape.N(rows), shape.N(columns)))
		for i := range rows * columns {
			table[w.Name] = binary.LittleEndian.AppendUint32(table[w.Name], uint32(0x3b000000+i%64<<16))
		}
		return w
	}
	target := func(list ...int64) *ir.Value {
		w := g.Weight("", op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))})
		for _, n := range list {
			table[w.Name] = binary.LittleEndian.AppendUint64(table[w.Name], uint64(n))
		}
		return w
	}
	turned := func(x *ir.Value, perm ...int64) *ir.Value {
		return g.Call("transpose", op.Attrs{{Name: "perm", Value: perm}}, x)
	}
	product := func(a, b *ir.Value) *ir.Value { return g.Call("matmul", nil, a, b) }
	apart, joined := target(append(slices.Clone(lead), 0, int64(heads), int64(size))...), target(append(slices.Clone(lead), 0, int64(width))...)
	split := func(x *ir.Value) *ir.Value {
		return turned(g.Call("reshape", nil, product(x, weight(width, width)), apart), of(1, 0, 2)...)
	}
	x := g.Param("x", typed(append(slices.Clone(open), shape.Sym("tokens"), shape.N(width))...))
	var results []*ir.Value
	for layer := range layers {
		q, k, v := split(x), split(x), split(x)
		if past {
			earlier := func(name string, now *ir.Value) *ir.Value {
				before := g.Param(fmt.Sprintf("%s%d", name, layer), typed(append(slices.Clone(open), shape.N(heads), shape.Sym("past"), shape.N(size))...))
				all := g.Call("concat", op.Attrs{{Name: "axis", Value: 1 + first}}, before, now)
				results = append(results, all)
				return all
			}
			k, v = earlier("keys", k), earlier("values", v)
		}
		seen := g.Call("softmax", op.Attrs{{Name: "axis", Value: int64(-1)}}, product(q, turned(k, of(0, 2, 1)...)))
		y := g.Call("reshape", nil, turned(product(seen, v), of(1, 0, 2)...), joined)
		x = g.Call("add", nil, x, product(y, weight(width, width)))
		y = g.Call("relu", nil, product(x, weight(width, 4*width)))
		x = g.Call("add", nil, x, product(y, weight(4*width, width)))
	}
	g.Return(append(results, x)...)
	m, err := tenure.LoadProgram(modeltest.Must(g.Build()), table)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// upToCase is a model and the bounds that its promise is tested for.
type upToCase struct {
	name  string
	model func(t testing.TB) *tenure.Model
	opts  []tenure.SessionOption
	fixed map[string]int // sizes of dimensions
	vary  string         // the dimension that the test runs through
	sizes int            // that the promise has
}

func upToCases() []upToCase {
	width, most := 64, 512
	if *everySize {
		width = 384
	}
	if invariant.Enabled || testing.Short() {
		most = 32 // these builds compare each instance with a fresh compilation, or are slow
	}
	upTo, of := tenure.WithUpTo, tenure.WithSizes
	return []upToCase{
		{name: "encoder", model: func(t testing.TB) *tenure.Model { return transformer(t, 6, width, 4, false, false) },
			opts: []tenure.SessionOption{upTo("tokens", most)}, vary: "tokens", sizes: most + 1},
		{name: "decoder", model: func(t testing.TB) *tenure.Model { return transformer(t, 2, 64, 4, true, false) },
			opts: []tenure.SessionOption{upTo("past", 4*most-1), of("tokens", 1)}, fixed: map[string]int{"tokens": 1}, vary: "past", sizes: 4 * most},
		{name: "unet", model: func(t testing.TB) *tenure.Model {
			return modeltest.Load(t, filepath.Join(modeltest.SharedDir(t, "models/unet_tiny"), "model.onnx"))
		}, opts: []tenure.SessionOption{upTo("height", most), of("width", 64), of("batch", 1)}, fixed: map[string]int{"width": 64, "batch": 1}, vary: "height", sizes: most - 4},
	}
}

// TestUpTo compares the promise for all sizes with the memory of runs of many
// sizes, as package memory counts it: it is never exceeded, and it is reached
// where the promise says. The arena of a session that keeps it never changes.
func TestUpTo(t *testing.T) {
	for _, c := range upToCases() {
		for _, keeps := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keeps %v", c.name, keeps), func(t *testing.T) {
				memorytest.Check(t)
				m := c.model(t)
				opts := c.opts
				if !keeps {
					opts = append(slices.Clone(opts), tenure.WithGiveBack())
				}
				before := memory.Stats()
				s := modeltest.Session(t, m, opts...)
				r := s.Promise()
				if r.Sizes != c.sizes {
					t.Errorf("got %d sizes, want %d", r.Sizes, c.sizes)
				}
				var most plan.Range
				for _, n := range c.choose(r, *everySize) {
					arena, scratch, io := measure(t, s, c, n, before)
					if arena > r.Arena.Bytes || scratch > r.Scratch.Bytes || io > r.IO.Bytes || keeps && (arena != r.Arena.Bytes || scratch != r.Scratch.Bytes) {
						t.Errorf("%s = %d: measured %d of arena, %d of scratch, %d of inputs and outputs, promised %d, %d and %d",
							c.vary, n, arena, scratch, io, r.Arena.Bytes, r.Scratch.Bytes, r.IO.Bytes)
					}
					most.Arena.Raise(arena, []int{n})
					most.Scratch.Raise(scratch, []int{n})
					most.IO.Raise(io, []int{n})
					most.Worst.Raise(arena+scratch+io, []int{n})
				}
				want := r.PerRun()
				if !keeps {
					want = r.Worst.Bytes
				}
				if most.Arena.Bytes != r.Arena.Bytes || most.Scratch.Bytes != r.Scratch.Bytes || most.IO.Bytes != r.IO.Bytes || most.Worst.Bytes != want {
					t.Errorf("measured at most %+v, promised %+v, and %d in one run", most, *r, want)
				}
				t.Logf("%d structures, %d instances; arena %d at %s; %d per run, %d at %s", r.Structures, r.Instances, r.Arena.Bytes, r.Where(r.Arena.At),
					r.PerRun(), r.Worst.Bytes, r.Where(r.Worst.At))
			})
		}
	}
}

// choose returns the sizes to run, in mixed order: the worst ones, their
// neighbours and some others, or every one.
func (c *upToCase) choose(r *plan.Range, every bool) []int {
	at := slices.IndexFunc(r.Dims, func(d plan.RangeDim) bool { return d.Name == c.vary })
	most, least := r.Dims[at].Most, r.Dims[at].Most-c.sizes+1
	chosen := []int{most, least}
	for _, f := range []plan.RangeFigure{r.Arena, r.Scratch, r.IO, r.Worst} {
		chosen = append(chosen, f.At[at], max(f.At[at]-1, least))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := least; n <= most; n++ {
		if every || random.IntN(c.sizes) < 6 {
			chosen = append(chosen, n)
		}
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen
}

// measure runs a size and returns the memory of the session and of inputs and
// outputs since then, at their peaks.
func measure(t *testing.T, s *tenure.Session, c upToCase, n int, then memory.Figures) (arena, scratch, io int64) {
	t.Helper()
	sizes := map[string]int{c.vary: n}
	for name, size := range c.fixed {
		sizes[name] = size
	}
	in := inputsOf(t, s.Model(), sizes)
	memory.ResetPeak()
	out, err := s.Run(t.Context(), in)
	if err != nil {
		t.Fatalf("%s = %d: %v", c.vary, n, err)
	}
	now := memory.Stats()
	of := func(p memory.Purpose, peak bool) int64 {
		if peak {
			return now.Of(p).Peak - then.Of(p).Current
		}
		return now.Of(p).Current - then.Of(p).Current
	}
	// A smaller arena is taken after the larger one of the run before was
	// there.
	arena, scratch, io = of(memory.Activations, false), of(memory.Scratch, false), of(memory.IO, true)
	if r := s.Promise(); of(memory.Activations, true) > r.Arena.Bytes || of(memory.Scratch, true) > r.Scratch.Bytes {
		t.Errorf("%s = %d: a peak of %d bytes of arena and %d of scratch, promised %d and %d", c.vary, n,
			of(memory.Activations, true), of(memory.Scratch, true), r.Arena.Bytes, r.Scratch.Bytes)
	}
	if err := out.Release(); err != nil {
		t.Error(err)
	}
	for _, x := range in {
		if err := x.Tensor().Release(); err != nil {
			t.Error(err)
		}
	}
	return arena, scratch, io
}
