package optest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/opcases"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
	"github.com/tenure-go/tenure/shape"
)

// refillAllocates has the operators whose tasks allocate when they are
// refilled, and what.
var refillAllocates = map[string]string{
	"col2im":         "the table reads the blocks anew",
	"conv_transpose": "the table reads the window anew",
	"deform_conv":    "the table reads the window anew",
	"dft":            "tables of roots, per length",
	"max_unpool":     "the table reads the window anew",
	"pad":            "the table reads the pads anew",
	"resize":         "tables of taps, per axis",
	"stft":           "tables of roots, per length",
}

// windowOperand has the operand of an operator whose shape decides its window,
// which is read anew when that changes.
var windowOperand = map[string]int{"conv": 1, "fused_conv": 1, "conv_integer": 1, "qlinear_conv": 3}

// unsized has the operators whose sizes do not come from operands.
var unsized = map[string]string{"constant": "its shape is an attribute"}

// A task that is bound at some shapes and refilled for others computes, to the
// bit, what one computes that is bound at those, and back again.
func TestRefilledTasks(t *testing.T) {
	for _, def := range op.Builtin().Defs() {
		if def.Regions > 0 {
			continue
		}
		t.Run(def.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 11))
			pairs, rebound, allocates, smaller := 0, 0, 0.0, 0
			for i, c := range opcases.All()[def.Name] {
				if c.Fails != "" {
					continue
				}
				first, err := newSized(def, c)
				if err != nil {
					t.Fatalf("case %d: %v", i, err)
				}
				for range tries(c) {
					second, err := newSized(def, resized(c, r))
					if err != nil || slices.Equal(first.sig.Args, second.sig.Args) && slices.Equal(first.sig.Results, second.sig.Results) {
						continue // no legal call, or one of the same shapes
					}
					for _, pair := range [][2]*sized{{first, second}, {second, first}} {
						if fault := pair[0].bounds(pair[1], &smaller); fault != "" {
							t.Errorf("case %d: %s", i, fault)
						}
					}
					n, err := first.refillTo(second)
					if errors.Is(err, compute.ErrRebind) {
						rebound++
						continue
					}
					if err != nil {
						t.Fatalf("case %d: %v to %v: %v", i, first.sig.Args, second.sig.Args, err)
					}
					if w, ok := windowOperand[def.Name]; !ok || first.sig.Args[w] == second.sig.Args[w] {
						allocates = max(allocates, n)
					}
					pairs++
				}
			}
			t.Logf("%d pairs, %d smaller, %d rebound, %v allocations", pairs, smaller, rebound, allocates)
			if (pairs == 0) != (unsized[def.Name] != "") {
				t.Errorf("got %d pairs of shapes, listed as without sizes: %q", pairs, unsized[def.Name])
			}
			if (allocates > 0) != (refillAllocates[def.Name] != "") {
				t.Errorf("got %v allocations per Refill, listed as: %q", allocates, refillAllocates[def.Name])
			}
			if rebound > 0 {
				t.Errorf("got %d calls that are to be bound again, want none", rebound)
			}
		})
	}
}

// tries is how often a case is changed: large ones, which take long, seldom.
func tries(c optest.Case) int {
	total := 0
	for _, a := range c.Args {
		total += len(a.Data)
	}
	if total > 1<<14 {
		return 2
	}
	return 8
}

// sized is a call at some shapes, with the results that it has bound there.
type sized struct {
	sig  op.Sig
	in   []op.Arg
	out  []op.Arg
	want [][]byte
}

// newSized binds and runs a case.
func newSized(def *op.Def, c optest.Case) (*sized, error) {
	attrs, err := op.NewAttrs(c.Attrs...)
	if err != nil {
		return nil, err
	}
	s := &sized{sig: op.Sig{Def: def, Attrs: attrs, Results: make([]op.Type, max(c.Results, 1))}}
	for _, a := range c.Args {
		s.sig.Args = append(s.sig.Args, a.Type)
		to := op.Arg{Type: a.Type, Data: aligned(len(a.Data))}
		copy(to.Data, a.Data)
		if !a.IsZero() {
			to.Layout = shape.RowMajor(a.Shape)
		}
		s.in = append(s.in, to)
	}
	s.sig.Known = func(arg int) ([]byte, bool) { return s.in[arg].Data, s.sig.Has(arg) }
	if err := op.InferTypes(&s.sig); err != nil {
		return nil, err
	}
	most, ok, err := s.sig.Largest()
	if err != nil || !ok {
		return nil, fmt.Errorf("got the bound %v, want static types: %w", most, errors.Join(err, shape.ErrShape))
	}
	s.sig.Results = most
	for _, r := range most {
		n, err := r.Bytes()
		if err != nil || n > 1<<24 {
			return nil, fmt.Errorf("got %s, want less: %w", r, errors.Join(err, shape.ErrShape))
		}
		s.out = append(s.out, op.Arg{Type: r, Layout: shape.RowMajor(r.Shape), Data: aligned(n)})
	}
	task, err := compute.Bind(s.call())
	if err != nil {
		return nil, err
	}
	s.want, err = runOnce(task)
	return s, err
}

// call returns the call, in structures of its own.
func (s *sized) call() *op.Call {
	sig := s.sig
	return &op.Call{Sig: &sig, In: slices.Clone(s.in), Out: slices.Clone(s.out)}
}

// set sets the shapes, the known values and the bytes of a call to those of s.
func (s *sized) set(c *op.Call) {
	*c.Sig = s.sig
	copy(c.In, s.in)
	copy(c.Out, s.out)
}

// refillTo binds a task at s, and refills it for the shapes of other, back, and
// there again. It returns how much a Refill allocates after that.
func (s *sized) refillTo(other *sized) (allocates float64, err error) {
	c := s.call()
	task, err := compute.Bind(c)
	if err != nil {
		return 0, err
	}
	for i, next := range []*sized{other, s, other} {
		next.set(c)
		if err := task.Refill(); err != nil {
			return 0, err
		}
		bound, err := compute.Bind(next.call())
		if err != nil {
			return 0, err
		}
		if task.Tiles != bound.Tiles || task.Scratch != bound.Scratch {
			return 0, fmt.Errorf("refill %d: got %d tiles and %d bytes of scratch, want %d and %d as when bound", i, task.Tiles, task.Scratch, bound.Tiles, bound.Scratch)
		}
		got, err := runOnce(task)
		if err != nil {
			return 0, fmt.Errorf("refill %d: %w", i, err)
		}
		for r := range got {
			if !bytes.Equal(got[r], next.want[r]) {
				return 0, fmt.Errorf("refill %d: result %d: got % x, want % x as when bound", i, r, got[r][:min(64, len(got[r]))], next.want[r][:min(64, len(next.want[r]))])
			}
		}
	}
	again := func() {
		s.set(c)
		err = errors.Join(err, task.Refill())
		other.set(c)
		err = errors.Join(err, task.Refill())
	}
	allocates = testing.AllocsPerRun(2, again)
	for tries := 0; allocates > 0 && tries < 5; tries++ { // others in this process allocate, too
		allocates = min(allocates, testing.AllocsPerRun(2, again))
	}
	return allocates, err
}

// bounds compares the bound of scratch for sizes up to those of s with the
// scratch of a call of smaller sizes, and counts it.
func (s *sized) bounds(small *sized, count *int) (fault string) {
	fixed := func(arg, axis int) bool {
		return s.sig.Args[arg].Shape.Size(axis) == small.sig.Args[arg].Shape.Size(axis)
	}
	for i, a := range s.sig.Args {
		b := small.sig.Args[i]
		if a.IsZero() != b.IsZero() || !a.IsZero() && a.Shape.Rank() != b.Shape.Rank() {
			return ""
		}
		for axis, n := range a.Shape.Sizes() {
			if m := b.Shape.Size(axis); m > n || m == 0 && n > 0 {
				return ""
			}
		}
	}
	task, err := compute.Bind(s.call())
	if err != nil {
		return err.Error()
	}
	most, ok := task.MostScratch(fixed)
	if !ok {
		return ""
	}
	*count++
	other, err := compute.Bind(small.call())
	if err != nil {
		return err.Error()
	}
	if other.Scratch > most || task.Scratch > most {
		return fmt.Sprintf("got %d bytes of scratch for %v and %d for %v, want at most %d", other.Scratch, small.sig.Args, task.Scratch, s.sig.Args, most)
	}
	return ""
}

// runOnce runs a task over results and scratch full of rubbish.
func runOnce(task *compute.Task) ([][]byte, error) {
	c := task.Call
	for i := range c.Out {
		fill(c.Out[i].Data, 0xa5)
	}
	if err := task.Start(); err != nil {
		return nil, err
	}
	scratch := aligned(task.Scratch)
	for tile := range task.Tiles {
		fill(scratch, 0x5a)
		task.Tile(tile, scratch)
	}
	if err := task.Finish(); err != nil {
		return nil, err
	}
	var got [][]byte
	for i := range c.Out {
		if c.Out[i].IsZero() {
			got = append(got, nil)
			continue
		}
		n, err := c.Out[i].Bytes() // a kernel may say that a result is smaller
		if err != nil {
			return nil, err
		}
		got = append(got, slices.Clone(c.Out[i].Data[:n]))
	}
	return got, nil
}

// fill sets all bytes.
func fill(b []byte, v byte) {
	if len(b) > 0 {
		b[0] = v
	}
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// resized returns the case with other sizes: all that are equal to some number
// are another one then. Bytes are repeated. Not every such call is legal.
func resized(c optest.Case, r *rand.Rand) optest.Case {
	var sizes []int
	for _, a := range c.Args {
		if !a.IsZero() {
			sizes = append(sizes, a.Shape.Sizes()...)
		}
	}
	change := map[int]int{}
	for range min(len(sizes), r.IntN(3)) {
		n := sizes[r.IntN(len(sizes))]
		change[n] = max(0, []int{0, 1, n - 1, n + 1, n + 3, 2 * n, n + 64}[r.IntN(7)])
	}
	out := c
	out.Args = slices.Clone(c.Args)
	if len(out.Args) > 0 {
		changeValue(&out.Args[r.IntN(len(out.Args))], r)
	}
	for i := range out.Args {
		a := &out.Args[i]
		if a.IsZero() {
			continue
		}
		next := slices.Clone(a.Shape.Sizes())
		for k, n := range next {
			if to, ok := change[n]; ok {
				next[k] = to
			}
		}
		s, err := shape.Of(next...)
		if err != nil {
			return c
		}
		old := a.Data
		a.Shape = s
		n, err := a.Bytes()
		if err != nil || n > 1<<22 {
			return c
		}
		a.Data = make([]byte, 0, n)
		for len(old) > 0 && len(a.Data) < n {
			a.Data = append(a.Data, old[:min(len(old), n-len(a.Data))]...)
		}
		a.Data = a.Data[:n]
	}
	return out
}

// changeValue makes one number of a few, which may decide sizes, another one.
func changeValue(a *optest.Operand, r *rand.Rand) {
	if a.IsZero() || a.Shape.NumElements() == 0 || a.Shape.NumElements() > 8 || a.DType != dtype.I64 && a.DType != dtype.F32 {
		return
	}
	a.Data = slices.Clone(a.Data)
	at := a.Data[r.IntN(a.Shape.NumElements())*a.DType.Size():]
	if a.DType == dtype.F32 {
		binary.LittleEndian.PutUint32(at, math.Float32bits(2*math.Float32frombits(binary.LittleEndian.Uint32(at))))
		return
	}
	binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)+uint64(r.IntN(4)))
}

// aligned returns n bytes at a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+n : skip+n]
}
