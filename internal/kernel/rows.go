package kernel

import "unsafe"

// run computes a row piece by piece.
func (f RowFunc) run(dst, x []float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0])
		dst, x = dst[n:], x[n:]
	}
}

func (f RowFunc2) run(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0], &y[0])
		dst, x, y = dst[n:], x[n:], y[n:]
	}
}

func (f RowFuncS) run(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0], s)
		dst, x = dst[n:], x[n:]
	}
}

func (f RowFuncST) run(dst, x []float32, s, t float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0], s, t)
		dst, x = dst[n:], x[n:]
	}
}

// run computes a row with the form for its length.
func (l *Row) run(dst, x []float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.run(dst, x)
}

func (l *Row2) run(dst, x, y []float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.run(dst, x, y)
}

func (l *RowS) run(dst, x []float32, s float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.run(dst, x, s)
}

func (l *RowST) run(dst, x []float32, s, t float32) {
	f := l.Short
	if len(dst) >= longRow {
		f = l.Long
	}
	f.run(dst, x, s, t)
}

// sumElements is how much of a row is added up in float32 before it goes on in float64: a lane adds up a hundredth of it.
const sumElements = 4 << 10

// isWhole tells whether rows of n elements can be written past the caches as they are.
func isWhole(v *Variant, dst []float32, n int) bool {
	return (int(uintptr(unsafe.Pointer(unsafe.SliceData(dst))))|4*n)%v.Rows.Bytes == 0
}
