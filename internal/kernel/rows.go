package kernel

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
	if len(dst) >= longRow {
		l.Long.run(dst, x)
		return
	}
	l.Short.run(dst, x)
}

func (l *Row2) run(dst, x, y []float32) {
	if len(dst) >= longRow {
		l.Long.run(dst, x, y)
		return
	}
	l.Short.run(dst, x, y)
}

func (l *RowS) run(dst, x []float32, s float32) {
	if len(dst) >= longRow {
		l.Long.run(dst, x, s)
		return
	}
	l.Short.run(dst, x, s)
}

func (l *RowST) run(dst, x []float32, s, t float32) {
	if len(dst) >= longRow {
		l.Long.run(dst, x, s, t)
		return
	}
	l.Short.run(dst, x, s, t)
}
