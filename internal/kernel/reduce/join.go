package reduce

import (
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Sums and extremes of types other than float32 are rows joined to rows where
// results are neighbours in the operand, and otherwise rows joined into one
// element: by a Loop, where they are long.

// leastTotal is the length from which a row goes through a Loop.
const leastTotal = 256

// joins tells which function of two operands the reduction is, if its rows can
// be joined in the type of the operand.
func (r *Reduction) joins() (op kernel.BinaryOp, ok bool) {
	switch r.Kind {
	case Sum, Mean:
		return kernel.Add, r.Len > 0
	case Max:
		return kernel.Max, r.Len > 0
	case Min:
		return kernel.Min, r.Len > 0
	}
	return 0, false
}

// Blocks of columns: as much as the first cache keeps, and of rows that long
// enough.
const (
	joinBlock = 2 << 10
	wideJoin  = 1 << 10 // from here on rows are read along, and not across
)

// joinColumns sets dst to the joined rows behind place at of src.
func joinColumns[T kernel.Number](v *kernel.Variant, r *Reduction, op kernel.BinaryOp, at int, dst, src []T) {
	first := 1
	copy(dst, src[at+r.starts[0]:])
	for _, s := range r.starts {
		done := 0
		p, n := at+s+first*r.run.stride, r.run.size-first
		if r.width < wideJoin && n > 0 {
			done = crossLoop(v, op, n, r.run.stride, dst, src[p:p+(n-1)*r.run.stride+len(dst)])
		}
		first = 0
		if done == len(dst) {
			continue
		}
		for range n {
			even := kernel.EvenRun(len(dst) - done)
			to, row := dst[done:], src[p+done:p+len(dst)]
			left := even.Rest(elementwise.BinaryLoop(v, op, &even, to, to, row))
			elementwise.ArithStrided(op, &left, to, to, row)
			p += r.run.stride
		}
	}
}

// crossLoop joins n rows, a stride apart, to as many elements of dst as it has
// a lane for, and returns their number.
func crossLoop[T kernel.Number](v *kernel.Variant, op kernel.BinaryOp, n, stride int, dst, src []T) int {
	l := &v.Elements.Columns[kernel.Kind[T]()][op]
	if l.Step == 0 || len(dst) < l.Step {
		return 0
	}
	cell := kernel.Limits.Get().(*[2]uint64)
	cell[0] = uint64(stride) * uint64(unsafe.Sizeof(dst[0]))
	done := 0
	for ; done+l.Step <= len(dst); done += l.Step {
		for k := 0; k < n; k += kernel.AsmElements / l.Step {
			l.Run(min(n-k, kernel.AsmElements/l.Step), kernel.OperandOf(dst, done, 1).At, kernel.OperandOf(src, k*stride+done, 1).At, (*byte)(unsafe.Pointer(&cell[0])), nil)
		}
	}
	kernel.Limits.Put(cell)
	return done
}

// joinRow joins a row into one element, which is not the first of it.
func joinRow[T kernel.Number](v *kernel.Variant, op kernel.BinaryOp, first T, x []T) T {
	if len(x) >= leastTotal {
		l := &v.Elements.Total[kernel.Kind[T]()][op]
		if l.Step > 0 {
			cell := kernel.Totals.Get().(*[256]byte)
			each := unsafe.Slice((*T)(unsafe.Pointer(cell)), l.Step)
			for i := range each {
				each[i] = first
				if op == kernel.Add {
					each[i] = 0
				}
			}
			done := l.Over(len(x), kernel.Operand{At: &cell[0]}, kernel.OperandOf(x, 0, 1), kernel.Operand{}, kernel.Operand{})
			first, x = joinChains(op, first, each), x[done:]
			kernel.Totals.Put(cell)
		}
	}
	return joinChains(op, first, x)
}

// joinChains goes element by element, in four chains that the processor runs
// side by side.
func joinChains[T kernel.Number](op kernel.BinaryOp, first T, x []T) T {
	a, b, c, d := first, first, first, first
	switch op {
	case kernel.Max:
		for ; len(x) >= 4; x = x[4:] {
			a, b, c, d = max(a, x[0]), max(b, x[1]), max(c, x[2]), max(d, x[3])
		}
		for _, v := range x {
			a = max(a, v)
		}
		return max(a, b, c, d)
	case kernel.Min:
		for ; len(x) >= 4; x = x[4:] {
			a, b, c, d = min(a, x[0]), min(b, x[1]), min(c, x[2]), min(d, x[3])
		}
		for _, v := range x {
			a = min(a, v)
		}
		return min(a, b, c, d)
	}
	b, c, d = 0, 0, 0
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
	}
	for _, v := range x {
		a += v
	}
	return (a + b) + (c + d)
}

// mean divides sums, where the reduction is a mean.
func mean[T kernel.Number](r *Reduction, dst []T) {
	if r.Kind == Mean {
		for i := range dst {
			dst[i] /= T(r.Len)
		}
	}
}

// reduceByRows computes results [lo, hi) of sums and extremes, and reports
// whether it does: floats that are no neighbours in the operand are for
// foldRuns.
func reduceByRows[T kernel.Number](v *kernel.Variant, r *Reduction, lo, hi int, dst, src []T) bool {
	op, ok := r.joins()
	if !ok {
		return false
	}
	if r.width >= leastColumn {
		for o := lo; o < hi; {
			w := min(joinBlock, hi-o, r.width-o%r.width)
			joinColumns(v, r, op, r.offset(o), dst[o:o+w], src)
			o += w
		}
		mean(r, dst[lo:hi])
		return true
	}
	if r.width > 1 || r.run.stride != 1 || T(1)/2 != 0 {
		return false
	}
	for o := lo; o < hi; o++ {
		at := r.offset(o)
		acc := src[at+r.starts[0]]
		for i, s := range r.starts {
			row := src[at+s : at+s+r.run.size]
			if i == 0 {
				row = row[1:]
			}
			acc = joinRow(v, op, acc, row)
		}
		dst[o] = acc
	}
	mean(r, dst[lo:hi])
	return true
}
