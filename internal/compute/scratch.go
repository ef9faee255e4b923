package compute

import (
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/op"
)

// scratchBounder is a kernel that bounds its scratch for smaller sizes.
type scratchBounder interface {
	// mostScratch returns a number of bytes that no Refill of the task exceeds
	// for sizes from 1 up to those of t.Call, axis by axis. The axes that are
	// fixed keep their sizes.
	mostScratch(t *Task, fixed Fixed) int
}

// Fixed says of an axis of an operand that it has the same size in all calls.
type Fixed func(arg, axis int) bool

// all reports whether no axis of an operand changes.
func (f Fixed) all(c *op.Call, arg int) bool {
	for axis := range c.In[arg].Shape.Rank() {
		if !f(arg, axis) {
			return false
		}
	}
	return true
}

// MostScratch returns a number of bytes that the scratch of the task does not
// exceed when it is refilled for any sizes from 1 up to those that t.Call has
// now, operand by operand and axis by axis; fixed axes keep theirs. ok is
// false where no such bound is known: kernels choose tiles by size, so that a
// smaller call may take more.
func (t *Task) MostScratch(fixed Fixed) (bytes int, ok bool) {
	if takesNone[t.Call.Def.Name] {
		return 0, t.Scratch == 0
	}
	if k, bounded := t.Kernel.(scratchBounder); bounded {
		return (k.mostScratch(t, fixed) + 63) &^ 63, true
	}
	return 0, false
}

// takesNone names operators that move or fill elements. Their kernels take no
// scratch at any size.
var takesNone = map[string]bool{
	"identity": true, "copy": true, "reshape": true, "squeeze": true, "unsqueeze": true, "flatten": true, "shape": true, "size": true,
	"transpose": true, "expand": true, "tile": true, "concat": true, "split": true, "slice": true, "gather": true, "pad": true,
	"depth_to_space": true, "space_to_depth": true, "cast": true, "constant_of_shape": true, "range": true, "where": true, "block_gather": true,
}

func (k *unaryF32) mostScratch(*Task, Fixed) int { return 4 * elementwise.StreamScratchFloats }

func (k *unaryHalf) mostScratch(*Task, Fixed) int { return halfScratch }

func (k *binaryHalf) mostScratch(*Task, Fixed) int { return halfScratch }

func (k *predicateHalf) mostScratch(*Task, Fixed) int { return halfScratch }

// mostScratch: a large result is written by a chain of one step.
func (k *binaryF32) mostScratch(t *Task, _ Fixed) int {
	if 4*elements(&t.Call.Out[0]) < streamBytes {
		return 0
	}
	return 4 * elementwise.MostChainScratchFloats(2, 1)
}

func (k *chain) mostScratch(*Task, Fixed) int {
	return 4 * elementwise.MostChainScratchFloats(len(k.Operands), len(k.Steps))
}

func (k *softmax[T]) mostScratch(t *Task, fixed Fixed) int {
	axis := axisOf(t.Call, t.Call.In[0].Shape.Rank())
	most := mostStreamed(t.Call, k.spec.Axis)
	if k.spec.Inner > 1 {
		columns := k.spec
		if !fixed(0, axis) {
			columns.Axis = 0 // a short axis has the widest blocks
		}
		most = max(most, columns.ScratchBytes())
	}
	return most
}

// mostStreamed bounds the scratch of a result that is written by rows past the
// caches.
func mostStreamed(c *op.Call, row int) int {
	if 4*elements(&c.Out[0]) < streamBytes {
		return 0
	}
	return 4 * min(row, reduce.StreamRows)
}

func (k *layerNorm[T]) mostScratch(t *Task, fixed Fixed) int {
	c := t.Call
	axis, rank := axisOf(c, c.In[0].Shape.Rank()), c.In[0].Shape.Rank()
	steady := true
	for i := axis; i < rank; i++ {
		steady = steady && fixed(0, i)
	}
	spread := false
	for i := 1; i < len(c.In); i++ {
		spread = spread || has(c, i) && (k.spread[i] || !steady || !fixed.all(c, i))
	}
	if spread {
		return max(2*k.spec.Len*c.In[0].DType.Size(), mostStreamed(c, k.spec.Len))
	}
	return mostStreamed(c, k.spec.Len)
}

func (k *lrn[T]) mostScratch(t *Task, _ Fixed) int {
	return k.spec.MostScratchElements() * t.Call.In[0].DType.Size()
}

func (k *floatGemm) mostScratch(t *Task, fixed Fixed) int {
	p := k.problem.floatGemm()
	p.PackedB, p.CompressedB = k.PackedB, k.CompressedB
	return gemm.MostScratchBytes(t.variant, &p, fixed.all(t.Call, 1))
}
