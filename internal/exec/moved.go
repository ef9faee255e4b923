package exec

import (
	"unsafe"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
)

// Call returns call k of the program.
func (e *Executable) Call(k int) *ir.Call { return e.steps[k].call }

// Moved returns how many bytes the operands and the results of call k have,
// which has just run: operands that lie in the same bytes once, constants in
// the form in which the call reads them, and no operands that lie where they
// are parts of the result. It is for [Runner.Watch].
func (r *Runner) Moved(k int) (read, written int64) {
	seen := make(map[*byte]int, 8)
	add := func(data []byte) (n int64) {
		at := unsafe.SliceData(data)
		if n = int64(len(data) - seen[at]); n <= 0 {
			return 0
		}
		seen[at] = len(data)
		return n
	}
	step := &r.exe.steps[k]
	in := len(step.call.Args)
	data := func(i int) []byte {
		c := r.steps[k].call
		if t := r.steps[k].task; t != nil {
			c = t.Call
		}
		switch n := step.refs[i].dynamic; {
		case n >= 0:
			return r.dynamic[n].bytes()
		case i < in:
			return c.In[i].Data
		}
		return c.Out[i-in].Data
	}
	var starts []int
	if t := r.steps[k].task; t != nil {
		starts = t.Call.Pieces(nil)
	}
	there := int64(0) // bytes of the result that were not copied
	for i, a := range step.call.Args {
		if a.Value == nil {
			continue
		}
		x := data(i)
		if starts != nil && len(x) > 0 && unsafe.SliceData(x) == unsafe.SliceData(data(in)[starts[i]:]) {
			there += int64(len(x))
			continue
		}
		read += add(x)
	}
	clear(seen)
	for i, v := range step.call.Results {
		if v != nil {
			written += add(data(in + i))
		}
	}
	return read, written - there
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
