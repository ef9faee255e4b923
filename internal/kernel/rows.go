package kernel

import "unsafe"

// Run computes a row, in pieces of AsmElements.
func (f RowFunc) Run(dst, x []float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), AsmElements)
		f(n, &dst[0], &x[0])
		dst, x = dst[n:], x[n:]
	}
}

// Run computes a row, in pieces of AsmElements.
func (f RowFunc2) Run(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), AsmElements)
		f(n, &dst[0], &x[0], &y[0])
		dst, x, y = dst[n:], x[n:], y[n:]
	}
}

// Run computes a row, in pieces of AsmElements.
func (f RowFuncS) Run(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), AsmElements)
		f(n, &dst[0], &x[0], s)
		dst, x = dst[n:], x[n:]
	}
}

// Run computes a row, in pieces of AsmElements.
func (f RowFuncST) Run(dst, x []float32, s, t float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), AsmElements)
		f(n, &dst[0], &x[0], s, t)
		dst, x = dst[n:], x[n:]
	}
}

// Run computes a row with the form for its length.
func (l *Row) Run(dst, x []float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.Run(dst, x)
}

// Run computes a row with the form for its length.
func (l *Row2) Run(dst, x, y []float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.Run(dst, x, y)
}

// Run computes a row with the form for its length.
func (l *RowS) Run(dst, x []float32, s float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.Run(dst, x, s)
}

// Run computes a row with the form for its length.
func (l *RowST) Run(dst, x []float32, s, t float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.Run(dst, x, s, t)
}

// SumElements is how much of a row is added up in float32 before the sum is
// added to one in float64: each lane of a vector adds up a hundredth of it or
// less.
const SumElements = 4 << 10

// IsWhole reports whether rows of n elements can be written past the caches as
// they are.
func IsWhole(v *Variant, dst []float32, n int) bool {
	return (int(uintptr(unsafe.Pointer(unsafe.SliceData(dst))))|4*n)%v.Rows.Bytes == 0
}
