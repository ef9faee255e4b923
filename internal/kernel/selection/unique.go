package selection

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

// CompressSpec picks rows of Inner bytes of [Outer, Rows, Inner].
type CompressSpec struct{ Outer, Rows, Inner int }

// Compress writes the rows for which the condition, which may be shorter,
// holds, and returns how many of each outer index these are.
func Compress(s *CompressSpec, dst, src, condition []byte) int {
	at, count := 0, 0
	for o := range s.Outer {
		for i, c := range condition {
			if c != 0 {
				at += copy(dst[at:at+s.Inner], src[(o*s.Rows+i)*s.Inner:])
			}
		}
	}
	for _, c := range condition {
		if c != 0 {
			count++
		}
	}
	return count
}

// UniqueSpec compares rows of [Outer, Rows, Inner] elements.
type UniqueSpec struct {
	Outer, Rows, Inner int
	Sorted             bool // the different rows in ascending order, else in the order in which they come
}

// Scratch is how many numbers Unique wants for elements of a type.
func (s *UniqueSpec) Scratch(dt dtype.DType) int {
	if s.Outer != 1 || s.Inner != 1 || kernel.KindOf(dt) < 0 {
		return 0
	}
	return 2 * orderWords * s.Rows
}

// Unique returns how many different rows there are. It sets where each is
// first, which one each row is, and how often each is there; the three lists
// have a capacity of Rows numbers. NaN equals NaN and comes last.
func Unique(s *UniqueSpec, dt dtype.DType, src []byte, first, which, counts, scratch []int64) int {
	n := 0
	if s.Scratch(dt) > 0 {
		n = uniqueElements(s, dt, src, first, which, counts, scratch)
	} else {
		n = uniqueRows(s, dt, src, first, which, counts)
	}
	if !s.Sorted {
		s.inOrder(n, first, which, counts)
	}
	return n
}

// uniqueElements sorts by keys: equal ones are of equal elements.
func uniqueElements(s *UniqueSpec, dt dtype.DType, src []byte, first, which, counts, scratch []int64) int {
	items := orderItems(scratch, 2*s.Rows)
	keysOf(dt, items[:s.Rows], src)
	n := 0
	for i, items := 0, sortItems(items[:s.Rows], items[s.Rows:]); i < len(items); i++ {
		if i == 0 || items[i].key != items[i-1].key {
			first[n], counts[n] = items[i].at, 0
			n++
		}
		which[items[i].at] = int64(n - 1)
		counts[n-1]++
	}
	return n
}

func keysOf(dt dtype.DType, items []orderItem, src []byte) {
	switch dt {
	case dtype.F32:
		orderKeys(items, kernel.View[float32](src), 0, 1, 0, true)
	case dtype.F64:
		orderKeys(items, kernel.View[float64](src), 0, 1, 0, true)
	case dtype.I8:
		orderKeys(items, kernel.View[int8](src), 0, 1, 0, false)
	case dtype.I16:
		orderKeys(items, kernel.View[int16](src), 0, 1, 0, false)
	case dtype.I32:
		orderKeys(items, kernel.View[int32](src), 0, 1, 0, false)
	case dtype.I64:
		orderKeys(items, kernel.View[int64](src), 0, 1, 0, false)
	case dtype.U8:
		orderKeys(items, src, 0, 1, 0, false)
	case dtype.U16:
		orderKeys(items, kernel.View[uint16](src), 0, 1, 0, false)
	case dtype.U32:
		orderKeys(items, kernel.View[uint32](src), 0, 1, 0, false)
	case dtype.U64:
		orderKeys(items, kernel.View[uint64](src), 0, 1, 0, false)
	default:
		kernel.Bug("unique: elements of type %s", dt)
	}
}

// uniqueRows compares rows element by element.
func uniqueRows(s *UniqueSpec, dt dtype.DType, src []byte, first, which, counts []int64) int {
	order := first
	for i := range order {
		order[i] = int64(i)
	}
	compare := comparer(dt, src)
	rows := func(a, b int64) int {
		for o := range s.Outer {
			for k := range s.Inner {
				if c := compare((o*s.Rows+int(a))*s.Inner+k, (o*s.Rows+int(b))*s.Inner+k); c != 0 {
					return c
				}
			}
		}
		return 0
	}
	slices.SortFunc(order, func(a, b int64) int {
		if c := rows(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	n := 0
	for i, at := range order {
		if i == 0 || rows(order[n-1], at) != 0 {
			order[n] = at // behind i: the overwritten entry has been read
			counts[n] = 0
			n++
		}
		which[at] = int64(n - 1)
		counts[n-1]++
	}
	return n
}

// inOrder numbers the n different rows by where they are first.
func (s *UniqueSpec) inOrder(n int, first, which, counts []int64) {
	slices.Sort(first[:n])
	renamed := counts[:n] // by the old number; counted again below
	for i, at := range first[:n] {
		renamed[which[at]] = int64(i)
	}
	for k, old := range which[:s.Rows] {
		which[k] = renamed[old]
	}
	clear(counts[:n])
	for _, row := range which[:s.Rows] {
		counts[row]++
	}
}

// Rows writes the given rows of elements of size bytes.
func Rows(s *UniqueSpec, size int, dst, src []byte, rows []int64) {
	inner, at := s.Inner*size, 0
	for o := range s.Outer {
		for _, i := range rows {
			at += copy(dst[at:at+inner], src[(o*s.Rows+int(i))*inner:])
		}
	}
}

// comparer compares two elements by their numbers.
func comparer(dt dtype.DType, src []byte) func(i, j int) int {
	switch dt {
	case dtype.F32:
		return floatComparer(kernel.View[float32](src))
	case dtype.F64:
		return floatComparer(kernel.View[float64](src))
	case dtype.F16:
		x := kernel.View[dtype.Float16](src)
		return func(i, j int) int { return compareFloats(float64(x[i].Float32()), float64(x[j].Float32())) }
	case dtype.BF16:
		x := kernel.View[dtype.BFloat16](src)
		return func(i, j int) int { return compareFloats(float64(x[i].Float32()), float64(x[j].Float32())) }
	case dtype.I8:
		return intComparer(kernel.View[int8](src))
	case dtype.I16:
		return intComparer(kernel.View[int16](src))
	case dtype.I32:
		return intComparer(kernel.View[int32](src))
	case dtype.I64:
		return intComparer(kernel.View[int64](src))
	case dtype.U8, dtype.Bool:
		return intComparer(src)
	case dtype.U16:
		return intComparer(kernel.View[uint16](src))
	case dtype.U32:
		return intComparer(kernel.View[uint32](src))
	case dtype.U64:
		return intComparer(kernel.View[uint64](src))
	}
	kernel.Bug("unique: elements of type %s", dt)
	return nil
}

func intComparer[T kernel.Integer](x []T) func(i, j int) int {
	return func(i, j int) int { return cmp.Compare(x[i], x[j]) }
}

func floatComparer[T kernel.Float](x []T) func(i, j int) int {
	return func(i, j int) int { return compareFloats(float64(x[i]), float64(x[j])) }
}

func compareFloats(a, b float64) int {
	if math.IsNaN(a) || math.IsNaN(b) {
		return -cmp.Compare(a, b) // which puts NaN first
	}
	return cmp.Compare(a, b)
}
