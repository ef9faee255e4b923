package exec

import (
	"unsafe"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
)

// Call returns call k of the program.
func (e *Executable) Call(k int) *ir.Call { return e.steps[k].call }

// Moved returns how many bytes the operands and the results of call k have,
// which has just run: operands that lie in the same bytes once, constants in
// the form in which the call reads them, and no operands that lie where they
// are parts of the result. It is for [Runner.Watch].
func (r *Runner) Moved(k int) (read, written int64) {
	seen := make(map[*byte]int64, 8)
	add := func(a *op.Arg) (n int64) {
		at, size := unsafe.SliceData(a.Data), bytesOf(a)
		if n = size - seen[at]; n <= 0 {
			return 0
		}
		seen[at] = size
		return n
	}
	step := &r.exe.steps[k]
	in := len(step.call.Args)
	arg := func(i int) *op.Arg {
		c := r.steps[k].call
		if t := r.steps[k].task; t != nil {
			c = t.Call
		}
		switch n := r.exe.ref(k, i).dynamic; {
		case n >= 0:
			return &op.Arg{Data: r.dynamic[n].bytes()}
		case i < in:
			return &c.In[i]
		}
		return &c.Out[i-in]
	}
	there := int64(0) // bytes of the result that were not copied
	for i, a := range step.call.Args {
		switch {
		case a.Value == nil:
		case r.isInResult(k, i):
			there += bytesOf(arg(i))
		default:
			read += add(arg(i))
		}
	}
	clear(seen)
	for i, v := range step.call.Results {
		if v != nil {
			written += add(arg(in + i))
		}
	}
	return read, written - there
}

// bytesOf returns how many bytes the elements of an operand or result have.
func bytesOf(a *op.Arg) int64 {
	if a.Layout == nil || a.Layout.IsContiguous() {
		return int64(len(a.Data))
	}
	return int64(a.Shape.NumElements() * a.DType.Size())
}

// isInResult reports whether operand i of call k lies where it is a part of the
// result.
func (r *Runner) isInResult(k, i int) bool {
	t := r.steps[k].task
	if t == nil || len(t.Call.In[i].Data) == 0 {
		return false
	}
	at := t.Call.Parts(nil)
	if at == nil {
		return false
	}
	to := &t.Call.Out[0]
	rank, start := to.Shape.Rank(), 0
	if at[i*rank] < 0 {
		return false
	}
	for d, stride := range to.Layout.Strides() {
		start += at[i*rank+d] * stride * to.DType.Size()
	}
	return unsafe.SliceData(t.Call.In[i].Data) == unsafe.SliceData(to.Data[start:])
}

// DynamicBytes returns how many bytes the buffers of values take at this moment
// whose size depends on data. It is for [Runner.Watch].
func (r *Runner) DynamicBytes() (sum int64) {
	if r.buffers == 0 {
		return 0
	}
	seen := map[*memory.Buffer]bool{}
	for n := range r.dynamic {
		if b := r.dynamic[n].buffer(); b != nil && !seen[b] {
			seen[b] = true
			sum += int64(b.Len())
		}
	}
	return sum
}
