package kernel

import "math"

// ReduceKind is what a reduction computes.
type ReduceKind uint8

// The reductions. Of no elements a sum is 0, a product 1, a maximum the
// smallest number, a minimum the largest, and a mean not a number.
const (
	ReduceSum ReduceKind = iota
	ReduceMean
	ReduceProd
	ReduceMax // a NaN among floats is the result
	ReduceMin // a NaN among floats is the result
	ReduceL1
	ReduceL2
	ReduceSumSquare
	ReduceLogSum
	ReduceLogSumExp
)

// reduceBlock is the number of neighbouring results that are computed
// together where they are neighbours in the operand too.
const reduceBlock = 32

// Reduce is a reduction of a row-major tensor along some of its axes.
type Reduce struct {
	Kind  ReduceKind
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
func (r *Reduce) Prepare(kind ReduceKind, sizes []int, reduced []bool) {
	*r = Reduce{Kind: kind, Count: 1, Len: 1, width: 1, run: axisStep{1, 1}, kept: r.kept[:0], starts: r.starts[:0]}
	var buf [MaxRank]axisStep
	gone := buf[:0]
	stride := 1
	last := 0 // what the axis inside this one was: 1 kept, 2 reduced
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

// addAxis appends an axis, outside those before; one that merges makes the last one longer.
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
func (r *Reduce) perTile() int {
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
func (r *Reduce) Tiles() int { return (r.Count + r.perTile() - 1) / r.perTile() }

// offset returns where the elements of result o begin in the operand.
func (r *Reduce) offset(o int) int {
	at := 0
	for i := len(r.kept) - 1; i >= 0; i-- {
		a := r.kept[i]
		at += o % a.size * a.stride
		o /= a.size
	}
	return at
}

// ReduceTile computes the results of one tile. Floats are accumulated in
// float64, integers in their own type, where they wrap.
func ReduceTile[T Number](v *Variant, r *Reduce, tile int, dst, src []T) {
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

func reduceFloats[T Number](v *Variant, r *Reduce, lo, hi int, dst, src []T) {
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
		if kind == ReduceLogSumExp {
			fillFloats(peak[:w], math.Inf(-1))
			eachRow(r, at, w, src, func(row []T) { foldFloats(ReduceMax, peak[:w], row) })
			for i, m := range peak[:w] {
				if math.IsInf(m, 0) || m != m {
					peak[i] = 0 // exp(x-0) already is what it must be: 0, infinite or NaN
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
func eachRow[T any](r *Reduce, at, w int, src []T, f func(row []T)) {
	for _, s := range r.starts {
		p := at + s
		for range r.run.size {
			f(src[p : p+w])
			p += r.run.stride
		}
	}
}

func firstFloat(kind ReduceKind) float64 {
	switch kind {
	case ReduceProd:
		return 1
	case ReduceMax:
		return math.Inf(-1)
	case ReduceMin:
		return math.Inf(1)
	}
	return 0
}

func lastFloat(kind ReduceKind, acc, peak float64, n int) float64 {
	switch kind {
	case ReduceMean:
		return acc / float64(n)
	case ReduceL2:
		return math.Sqrt(acc)
	case ReduceLogSum:
		return math.Log(acc)
	case ReduceLogSumExp:
		return math.Log(acc) + peak
	}
	return acc
}

func foldFloats[T Number](kind ReduceKind, acc []float64, row []T) {
	row = row[:len(acc)]
	switch kind {
	case ReduceSum, ReduceMean, ReduceLogSum:
		for j, x := range row {
			acc[j] += float64(x)
		}
	case ReduceProd:
		for j, x := range row {
			acc[j] *= float64(x)
		}
	case ReduceMax:
		for j, x := range row {
			acc[j] = max(acc[j], float64(x))
		}
	case ReduceMin:
		for j, x := range row {
			acc[j] = min(acc[j], float64(x))
		}
	case ReduceL1:
		for j, x := range row {
			acc[j] += math.Abs(float64(x))
		}
	case ReduceL2, ReduceSumSquare:
		for j, x := range row {
			acc[j] += float64(x) * float64(x)
		}
	}
}

// foldRuns folds all elements of one result, a run at a time.
func foldRuns[T Number](v *Variant, r *Reduce, at int, src []T, acc float64) float64 {
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

func reduceInts[T Number](r *Reduce, lo, hi int, dst, src []T) {
	for o := lo; o < hi; o++ {
		at := r.offset(o)
		acc, first := T(0), true
		if r.Kind == ReduceProd {
			acc = 1
		}
		logs := 0.0
		for _, s := range r.starts {
			p := at + s
			for range r.run.size {
				x := src[p]
				p += r.run.stride
				switch r.Kind {
				case ReduceSum, ReduceMean, ReduceLogSum:
					acc += x
				case ReduceProd:
					acc *= x
				case ReduceMax:
					if first || x > acc {
						acc = x
					}
				case ReduceMin:
					if first || x < acc {
						acc = x
					}
				case ReduceL1:
					if x < 0 {
						x = -x
					}
					acc += x
				case ReduceL2, ReduceSumSquare:
					acc += x * x
				case ReduceLogSumExp:
					logs += math.Exp(float64(x))
				}
				first = false
			}
		}
		dst[o] = lastInt(r, acc, logs, first)
	}
}

func lastInt[T Number](r *Reduce, acc T, logs float64, none bool) T {
	switch r.Kind {
	case ReduceMean:
		if r.Len == 0 {
			return 0
		}
		return acc / T(r.Len)
	case ReduceL2:
		return T(math.Sqrt(float64(acc)))
	case ReduceLogSum:
		return T(math.Log(float64(acc)))
	case ReduceLogSumExp:
		return T(math.Log(logs))
	case ReduceMax:
		if none {
			return smallest[T]()
		}
	case ReduceMin:
		if none {
			return largest[T]()
		}
	}
	return acc
}

// ArgExtreme writes, for every outer and inner index, where along the axis
// the largest (or smallest) element is. Of equal ones it is the first, or the
// last if last is true. A NaN is larger than any number, and smaller.
func ArgExtreme[T Number](v *Variant, dst []int64, src []T, outer, axis, inner int, smallest, last bool) {
	for o := range outer {
		if inner == 1 {
			dst[o] = int64(argRow(v, src[o*axis:(o+1)*axis], smallest, last))
			continue
		}
		for i := 0; i < inner; i += argBlock {
			w := min(argBlock, inner-i)
			argColumns(dst[o*inner+i:][:w], src[o*axis*inner+i:], axis, inner, smallest, last)
		}
	}
}

// argBlock columns are compared together, row by row.
const argBlock = 256

func argColumns[T Number](dst []int64, src []T, axis, inner int, smallest, last bool) {
	var block [argBlock]T
	best := block[:len(dst)]
	copy(best, src)
	clear(dst)
	for k := 1; k < axis; k++ {
		row := src[k*inner:][:len(best)]
		for i, x := range row {
			b := best[i]
			better := x > b
			if smallest {
				better = x < b
			}
			if better || x != x && b == b || last && (x == b || x != x) {
				best[i], dst[i] = x, int64(k)
			}
		}
	}
}

// argRow looks for the extreme number first, and then for where it is. A NaN is one.
func argRow[T Number](v *Variant, row []T, smallest, last bool) int {
	best := extreme(v, row, smallest)
	if last {
		for i := len(row) - 1; i > 0; i-- {
			if x := row[i]; x == best || x != x {
				return i
			}
		}
		return 0
	}
	if best != best {
		for i, x := range row {
			if x != x {
				return i
			}
		}
	}
	for i, x := range row {
		if x == best {
			return i
		}
	}
	return 0
}

// extreme is NaN if any element is.
func extreme[T Number](v *Variant, row []T, smallest bool) T {
	if f, ok := any(row).([]float32); ok {
		if smallest {
			return T(rowMin(v, f))
		}
		return T(rowMax(v, f))
	}
	if smallest {
		return joinRow(v, Min, row[0], row[1:])
	}
	return joinRow(v, Max, row[0], row[1:])
}
