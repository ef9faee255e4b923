package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Kind is the function of a reduction.
type Kind uint8

// The reductions. Of no elements a sum is 0, a product 1, a maximum the
// smallest number, a minimum the largest, and a mean not a number.
const (
	Sum Kind = iota
	Mean
	Prod
	Max // a NaN among floats is the result
	Min // a NaN among floats is the result
	L1
	L2
	SumSquare
	LogSum
	LogSumExp
)

// reduceBlock is the number of neighbouring results that are computed
// together where they are neighbours in the operand too.
const reduceBlock = 32

// Reduction is a reduction of a row-major tensor along some of its axes.
type Reduction struct {
	Kind  Kind
	Count int // results
	Len   int // elements per result

	kept   []axisStep // of the results, outermost first
	starts []int      // where the runs of a result begin, from its first element
	run    axisStep   // the innermost reduced axis: one run
	width  int        // neighbouring results that lie side by side in the operand
}

// axisStep is an axis as a number of steps of some elements.
type axisStep struct{ size, stride int }

// Prepare sets up the reduction of a tensor with the given sizes along the
// axes for which reduced is true.
func (r *Reduction) Prepare(kind Kind, sizes []int, reduced []bool) {
	*r = Reduction{Kind: kind, Count: 1, Len: 1, width: 1, run: axisStep{1, 1}, kept: r.kept[:0], starts: r.starts[:0]}
	var buf [kernel.MaxRank]axisStep
	gone := buf[:0]
	stride := 1
	last := 0 // the state of the axis inside this one: 1 kept, 2 reduced
	for i := len(sizes) - 1; i >= 0; i-- {
		n, ax := sizes[i], axisStep{sizes[i], stride}
		stride *= n
		which := 1
		if reduced[i] {
			which = 2
			r.Len *= n
		} else {
			r.Count *= n
		}
		switch {
		case n == 1:
			continue
		case reduced[i]:
			gone = addAxis(gone, ax, last == which)
		default:
			r.kept = addAxis(r.kept, ax, last == which)
		}
		last = which
	}
	reverse(r.kept)
	if len(r.kept) > 0 && r.kept[len(r.kept)-1].stride == 1 {
		r.width = r.kept[len(r.kept)-1].size
	}
	if r.Len == 0 {
		r.run = axisStep{}
		return
	}
	r.starts = append(r.starts, 0)
	if len(gone) > 0 {
		r.run = gone[0]
	}
	for _, a := range gone[min(1, len(gone)):] {
		for i, n := 1, len(r.starts); i < a.size; i++ {
			for _, s := range r.starts[:n] {
				r.starts = append(r.starts, s+i*a.stride)
			}
		}
	}
}

// addAxis appends an axis, outside those before; one that merges makes the last
// one longer.
func addAxis(axes []axisStep, ax axisStep, merges bool) []axisStep {
	if k := len(axes) - 1; merges && k >= 0 {
		axes[k].size *= ax.size
		return axes
	}
	return append(axes, ax)
}

func reverse(s []axisStep) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}

// reduceGrain is the number of elements that a tile of a reduction reads.
const reduceGrain = 32 << 10

// perTile returns the results of one tile, whole rows where they are rows.
func (r *Reduction) perTile() int {
	n := max(1, reduceGrain/max(r.Len, 1))
	switch {
	case r.width > 1 && n > r.width:
		n -= n % r.width
	case r.width >= leastColumn: // rows that are joined are lines of memory at least
		n = min(max(n, 64), r.width)
	}
	return n
}

// Tiles returns the number of tiles.
func (r *Reduction) Tiles() int { return (r.Count + r.perTile() - 1) / r.perTile() }

// offset returns where the elements of result o begin in the operand.
func (r *Reduction) offset(o int) int {
	at := 0
	for i := len(r.kept) - 1; i >= 0; i-- {
		a := r.kept[i]
		at += o % a.size * a.stride
		o /= a.size
	}
	return at
}

// Tile computes the results of one tile. Floats are accumulated in
// float64, integers in their own type, where they wrap.
func Tile[T kernel.Number](v *kernel.Variant, r *Reduction, tile int, dst, src []T) {
	lo := tile * r.perTile()
	hi := min(lo+r.perTile(), r.Count)
	var zero T
	switch any(zero).(type) {
	case float32:
		reduceFloats(v, r, lo, hi, dst, src)
	case float64:
		if reduceByRows(v, r, lo, hi, dst, src) {
			return
		}
		reduceFloats(v, r, lo, hi, dst, src)
	default:
		if !reduceByRows(v, r, lo, hi, dst, src) {
			reduceInts(r, lo, hi, dst, src)
		}
	}
}

func reduceFloats[T kernel.Number](v *kernel.Variant, r *Reduction, lo, hi int, dst, src []T) {
	var acc, peak [reduceBlock]float64
	for o := lo; o < hi; {
		w := min(reduceBlock, hi-o)
		if r.width > 1 {
			w = min(w, r.width-o%r.width)
		} else {
			w = 1
		}
		at := r.offset(o)
		kind := r.Kind
		if kind == LogSumExp {
			fillFloats(peak[:w], math.Inf(-1))
			eachRow(r, at, w, src, func(row []T) { foldFloats(Max, peak[:w], row) })
			for i, m := range peak[:w] {
				if math.IsInf(m, 0) || m != m {
					peak[i] = 0 // exp(x-0) is right already: 0, infinite or NaN
				}
			}
			fillFloats(acc[:w], 0)
			eachRow(r, at, w, src, func(row []T) {
				for j, x := range row {
					acc[j] += math.Exp(float64(x) - peak[j])
				}
			})
		} else {
			fillFloats(acc[:w], firstFloat(kind))
			if w == 1 {
				acc[0] = foldRuns(v, r, at, src, acc[0])
			} else {
				eachRow(r, at, w, src, func(row []T) { foldFloats(kind, acc[:w], row) })
			}
		}
		for j := range w {
			dst[o+j] = T(lastFloat(kind, acc[j], peak[j], r.Len))
		}
		o += w
	}
}

func fillFloats(s []float64, v float64) {
	for i := range s {
		s[i] = v
	}
}

// eachRow calls f for the w neighbours at every step of the reduced axes.
func eachRow[T any](r *Reduction, at, w int, src []T, f func(row []T)) {
	for _, s := range r.starts {
		p := at + s
		for range r.run.size {
			f(src[p : p+w])
			p += r.run.stride
		}
	}
}

func firstFloat(kind Kind) float64 {
	switch kind {
	case Prod:
		return 1
	case Max:
		return math.Inf(-1)
	case Min:
		return math.Inf(1)
	}
	return 0
}

func lastFloat(kind Kind, acc, peak float64, n int) float64 {
	switch kind {
	case Mean:
		return acc / float64(n)
	case L2:
		return math.Sqrt(acc)
	case LogSum:
		return math.Log(acc)
	case LogSumExp:
		return math.Log(acc) + peak
	}
	return acc
}

func foldFloats[T kernel.Number](kind Kind, acc []float64, row []T) {
	row = row[:len(acc)]
	switch kind {
	case Sum, Mean, LogSum:
		for j, x := range row {
			acc[j] += float64(x)
		}
	case Prod:
		for j, x := range row {
			acc[j] *= float64(x)
		}
	case Max:
		for j, x := range row {
			acc[j] = max(acc[j], float64(x))
		}
	case Min:
		for j, x := range row {
			acc[j] = min(acc[j], float64(x))
		}
	case L1:
		for j, x := range row {
			acc[j] += math.Abs(float64(x))
		}
	case L2, SumSquare:
		for j, x := range row {
			acc[j] += float64(x) * float64(x)
		}
	}
}

// foldRuns folds all elements of one result, a run at a time.
func foldRuns[T kernel.Number](v *kernel.Variant, r *Reduction, at int, src []T, acc float64) float64 {
	for _, s := range r.starts {
		p := at + s
		if r.run.stride == 1 {
			acc = foldRun(v, r.Kind, acc, src[p:p+r.run.size])
			continue
		}
		for range r.run.size {
			acc = foldRun(v, r.Kind, acc, src[p:p+1])
			p += r.run.stride
		}
	}
	return acc
}

func reduceInts[T kernel.Number](r *Reduction, lo, hi int, dst, src []T) {
	for o := lo; o < hi; o++ {
		at := r.offset(o)
		acc, first := T(0), true
		if r.Kind == Prod {
			acc = 1
		}
		logs := 0.0
		for _, s := range r.starts {
			p := at + s
			for range r.run.size {
				x := src[p]
				p += r.run.stride
				switch r.Kind {
				case Sum, Mean, LogSum:
					acc += x
				case Prod:
					acc *= x
				case Max:
					if first || x > acc {
						acc = x
					}
				case Min:
					if first || x < acc {
						acc = x
					}
				case L1:
					if x < 0 {
						x = -x
					}
					acc += x
				case L2, SumSquare:
					acc += x * x
				case LogSumExp:
					logs += math.Exp(float64(x))
				}
				first = false
			}
		}
		dst[o] = lastInt(r, acc, logs, first)
	}
}

func lastInt[T kernel.Number](r *Reduction, acc T, logs float64, none bool) T {
	switch r.Kind {
	case Mean:
		if r.Len == 0 {
			return 0
		}
		return acc / T(r.Len)
	case L2:
		return T(math.Sqrt(float64(acc)))
	case LogSum:
		return T(math.Log(float64(acc)))
	case LogSumExp:
		return T(math.Log(logs))
	case Max:
		if none {
			return kernel.Smallest[T]()
		}
	case Min:
		if none {
			return kernel.Largest[T]()
		}
	}
	return acc
}
