package optest_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/opcases"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// takesNoGaps has the operators of which [compute.Strided] is false for every
// layout with gaps, and why.
var takesNoGaps = map[string]string{
	"compress":                "the kernel sizes the result",
	"constant":                "written before the run",
	"constant_of_shape":       "written before the run",
	"dft":                     "rare between strides",
	"dynamic_quantize_linear": "rare between strides",
	"matmul_nbits":            "rare between strides",
	"max_unpool":              "rare between strides",
	"mel_weight_matrix":       "written before the run",
	"murmur_hash":             "rare between strides",
	"nll_loss":                "rare between strides",
	"non_max_suppression":     "the kernel sizes the result",
	"non_zero":                "the kernel sizes the result",
	"number_to_string":        "text",
	"random_normal":           "draws numbers in their order",
	"random_uniform":          "draws numbers in their order",
	"range":                   "written before the run",
	"regex_full_match":        "text",
	"stft":                    "rare between strides",
	"string_concat":           "text",
	"string_equal":            "text",
	"string_index":            "text",
	"string_normalizer":       "text",
	"string_split":            "text",
	"string_to_number":        "text",
	"string_token_index":      "text",
	"string_tokenize":         "text",
	"tf_idf":                  "text",
	"tree_ensemble":           "rare between strides",
	"unique":                  "the kernel sizes the result",
}

// stridedRefillAllocates has the operators whose strided tasks allocate when
// they are refilled, beside those of refillAllocates.
var stridedRefillAllocates = map[string]string{}

// laid is a call whose operands and results lie in layouts, in buffers that
// have bytes of others between their elements.
type laid struct {
	*sized
	in, out []op.Arg
	before  [][]byte // the operands' buffers
	gaps    int      // operands and results that have some
}

const gapByte = 0xc3

// lay puts the operands and results of a call into drawn layouts: any, or such
// that have gaps behind all inner elements of one axis, which is the same for
// those that have some.
func (s *sized) lay(r *rand.Rand, any bool) *laid {
	draw := func(of *shape.Shape) *shape.Layout { return drawLayout(of, r) }
	if !any {
		axis := r.IntN(4) * r.IntN(2)
		draw = func(of *shape.Shape) *shape.Layout {
			if r.IntN(3) > 0 || axis >= of.Rank() {
				return shape.RowMajor(of)
			}
			return gapAt(of, axis, 1+r.IntN(5))
		}
	}
	l := &laid{sized: s}
	for i := range s.in {
		a := l.put(s.in[i], draw)
		if !a.IsZero() {
			spread(a, s.in[i].Data)
		}
		l.in = append(l.in, a)
		l.before = append(l.before, slices.Clone(a.Data))
	}
	for i := range s.out {
		l.out = append(l.out, l.put(s.out[i], draw))
	}
	return l
}

// put returns an operand or result like a in a layout of its own, and in bytes
// that are all gapByte.
func (l *laid) put(a op.Arg, draw func(*shape.Shape) *shape.Layout) op.Arg {
	if a.IsZero() || a.DType.Size() == 0 || a.Shape.NumElements() == 0 {
		return a
	}
	a.Layout = draw(a.Shape)
	if !a.Layout.IsContiguous() {
		l.gaps++
	}
	n, err := a.Layout.ByteSpan(a.DType)
	if err != nil {
		panic(err)
	}
	a.Data = aligned(n + a.DType.Size())[a.DType.Size():]
	fill(a.Data, gapByte)
	return a
}

// drawLayout returns a layout that is contiguous, has a gap in one place, or
// may have some everywhere.
func drawLayout(s *shape.Shape, r *rand.Rand) *shape.Layout {
	sizes := s.Sizes()
	strides, step := make([]int, len(sizes)), 1
	everywhere := r.IntN(4) == 0
	if !everywhere {
		return gapAt(s, r.IntN(len(sizes)+1)-1, r.IntN(6))
	}
	for i := len(sizes) - 1; i >= 0; i-- {
		step += r.IntN(6)
		strides[i] = step
		step *= sizes[i]
	}
	return mustLay(s, strides)
}

// gapAt returns a layout with so many elements of others between all inner
// elements of an axis and those of its next index; none if there is no such
// axis.
func gapAt(s *shape.Shape, axis, gap int) *shape.Layout {
	strides, step := make([]int, s.Rank()), 1
	for i := s.Rank() - 1; i >= 0; i-- {
		if i == axis {
			step += gap
		}
		strides[i] = step
		step *= s.Size(i)
	}
	return mustLay(s, strides)
}

func mustLay(s *shape.Shape, strides []int) *shape.Layout {
	l, err := shape.Strided(s, strides...)
	if err != nil {
		panic(err)
	}
	return l
}

// eachElement calls f with the number of each element in row-major order, and
// the first of its bytes.
func eachElement(a op.Arg, f func(number, at int)) {
	sizes, strides, size := a.Shape.Sizes(), a.Layout.Strides(), a.DType.Size()
	index := make([]int, len(sizes))
	for k := range a.Shape.NumElements() {
		at := 0
		for i := range index {
			at += index[i] * strides[i]
		}
		f(k, at*size)
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < sizes[i] {
				break
			}
			index[i] = 0
		}
	}
}

// spread writes elements to where they lie.
func spread(a op.Arg, data []byte) {
	if a.DType.Size() == 0 || a.Layout == nil {
		copy(a.Data, data)
		return
	}
	n := a.DType.Size()
	eachElement(a, func(k, at int) { copy(a.Data[at:at+n], data[k*n:]) })
}

// gather reads elements from where they lie, and reports a byte between them
// that is not gapByte.
func gather(a op.Arg) (data []byte, err error) {
	if a.IsZero() || a.DType.Size() == 0 || a.Shape.NumElements() == 0 {
		return slices.Clone(a.Data), nil
	}
	n, rest := a.DType.Size(), slices.Clone(a.Data)
	eachElement(a, func(_, at int) {
		data = append(data, a.Data[at:at+n]...)
		fill(rest[at:at+n], gapByte)
	})
	for i, b := range rest {
		if b != gapByte {
			return nil, fmt.Errorf("got byte %#x written at %d of %s, which is none of the elements", b, i, a.Layout)
		}
	}
	return data, nil
}

func layouts(args []op.Arg) (list []*shape.Layout) {
	for i := range args {
		list = append(list, args[i].Layout)
	}
	return list
}

func (l *laid) takes() bool { return compute.Strided(&l.sig, layouts(l.in), layouts(l.out)) }

// set sets the types, layouts and bytes of a call to those of l.
func (l *laid) set(c *op.Call) {
	*c.Sig = l.sig
	copy(c.In, l.in)
	copy(c.Out, l.out)
}

// check runs a task that is bound or refilled for l, and compares it with the
// results of contiguous operands.
func (l *laid) check(task *compute.Task, run func(*compute.Task) error) error {
	for i := range l.out {
		if !l.out[i].IsZero() {
			fill(l.out[i].Data, gapByte)
		}
	}
	if err := run(task); err != nil {
		return err
	}
	for i := range l.in {
		if !bytes.Equal(l.in[i].Data, l.before[i]) {
			return fmt.Errorf("operand %d was written", i)
		}
	}
	for i := range l.out {
		if l.out[i].IsZero() {
			continue
		}
		got, err := gather(l.out[i])
		if err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
		for k := range got {
			if got[k] != l.want[i][k] {
				return fmt.Errorf("result %d of %s: got byte %#x of element %d, want %#x", i, l.out[i].Layout, got[k], k/l.out[i].DType.Size(), l.want[i][k])
			}
		}
	}
	return nil
}

func forwards(task *compute.Task) error { return inOrder(task, false) }

func backwards(task *compute.Task) error { return inOrder(task, true) }

func inOrder(task *compute.Task, reverse bool) error {
	if err := task.Start(); err != nil {
		return err
	}
	scratch := aligned(task.Scratch)
	for i := range task.Tiles {
		if reverse {
			i = task.Tiles - 1 - i
		}
		fill(scratch, 0x5a)
		task.Tile(i, scratch)
	}
	return task.Finish()
}

// Where compute.Strided is true, a task computes the same, to the bit, from
// operands and into results with gaps, and writes nothing between their
// elements: in any order of tiles, on two threads, and refilled. Where it is
// false, the call is not bound.
func TestStridedTasks(t *testing.T) {
	pool := compute.NewPool(2)
	defer pool.Close()
	drawn := 8
	if testing.Short() {
		drawn = 4
	}
	for _, def := range op.Builtin().Defs() {
		if def.Regions > 0 {
			continue
		}
		t.Run(def.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 17))
			var taken, refused int
			var allocates float64
			for i, c := range opcases.All()[def.Name] {
				if c.Fails != "" {
					continue
				}
				for try := range tries(c) {
					of := c
					if try%2 == 1 {
						of = resized(c, r)
					}
					s, err := newSized(def, of)
					if err != nil {
						continue // no legal call
					}
					for k := range drawn {
						l := s.lay(r, k%2 == 0)
						if l.gaps == 0 {
							continue
						}
						if !l.takes() {
							if refused++; !errors.Is(l.refusal(), op.ErrUnsupported) {
								t.Fatalf("case %d: %v: got the error %v from Bind, want one for layouts that are not taken", i, l.describe(), l.refusal())
							}
							continue
						}
						taken++
						n, err := l.checkAll(pool)
						if err != nil {
							t.Fatalf("case %d: %v: %v", i, l.describe(), err)
						}
						allocates = max(allocates, n)
					}
				}
			}
			t.Logf("%d layouts taken, %d refused, %v allocations", taken, refused, allocates)
			if (taken == 0) != (takesNoGaps[def.Name] != "") {
				t.Errorf("got %d of %d drawn layouts with gaps that are taken, listed as: %q", taken, taken+refused, takesNoGaps[def.Name])
			}
			if listed := refillAllocates[def.Name] + stridedRefillAllocates[def.Name]; (allocates > 0) && listed == "" {
				t.Errorf("got %v allocations per Refill, listed as: %q", allocates, listed)
			}
		})
	}
}

func (l *laid) describe() string {
	text := fmt.Sprint(l.sig.Attrs)
	for _, side := range [2][]op.Arg{l.in, l.out} {
		for i := range side {
			text += fmt.Sprintf(" %s%s", side[i].DType, side[i].Layout)
		}
		text += ";"
	}
	return text
}

// refusal is the error of Bind.
func (l *laid) refusal() error {
	c := l.call()
	l.set(c)
	_, err := compute.Bind(c)
	return err
}

// checkAll checks a task that is bound for l, and one that is bound for
// contiguous operands and refilled, back and forth.
func (l *laid) checkAll(pool *compute.Pool) (allocates float64, err error) {
	c := l.call()
	l.set(c)
	task, err := compute.Bind(c)
	if err != nil {
		return 0, err
	}
	tiles := task.Tiles // a run may set others
	scratch := aligned(task.Scratch * pool.Threads())
	shared := func(task *compute.Task) error { return pool.Run(nil, task, scratch) }
	for _, run := range []func(*compute.Task) error{forwards, backwards, shared} {
		if err := l.check(task, run); err != nil {
			return 0, err
		}
	}
	var failed error
	n := testing.AllocsPerRun(2, func() { failed = errors.Join(failed, shared(task)) })
	// Others in this process allocate, too. The race detector empties the pools
	// that kernels take scratch from.
	for tries := 0; n > 0 && tries < 300 && !raceDetector; tries++ {
		n = testing.AllocsPerRun(1, func() { failed = errors.Join(failed, shared(task)) })
	}
	if failed != nil || n > 0 && !raceDetector {
		return 0, fmt.Errorf("got %v allocations per run and the error %v, want none", n, failed)
	}
	c = l.call()
	again, err := compute.Bind(c)
	if err != nil {
		return 0, err
	}
	for range 2 {
		l.set(c)
		if err := again.Refill(); err != nil {
			return 0, fmt.Errorf("refilled: %w", err)
		}
		if again.Tiles != tiles || again.Scratch != task.Scratch {
			return 0, fmt.Errorf("refilled: got %d tiles and %d bytes of scratch, want %d and %d", again.Tiles, again.Scratch, tiles, task.Scratch)
		}
		if err := l.check(again, forwards); err != nil {
			return 0, fmt.Errorf("refilled: %w", err)
		}
		l.sized.set(c)
		if err := again.Refill(); err != nil {
			return 0, fmt.Errorf("refilled without gaps: %w", err)
		}
		got, err := runOnce(again)
		if err != nil {
			return 0, err
		}
		for i := range got {
			if !bytes.Equal(got[i], l.want[i]) {
				return 0, fmt.Errorf("refilled without gaps: result %d differs", i)
			}
		}
	}
	refill := func() {
		l.set(c)
		err = errors.Join(err, again.Refill())
	}
	allocates = testing.AllocsPerRun(2, refill)
	for tries := 0; allocates > 0 && tries < 5; tries++ {
		allocates = min(allocates, testing.AllocsPerRun(2, refill))
	}
	return allocates, err
}
