package move

// Reverse turns the first elements of each sequence round: rows of Inner bytes
// lie in [Time, Batch], or in [Batch, Time].
type Reverse struct {
	Time, Batch, Inner int
	BatchFirst         bool

	// Bytes from one row of the result and of the operand to the next one of
	// its sequence, and to that of the next sequence; 0 if rows follow each
	// other.
	Dst, Src RowSteps
}

// RowSteps are distances of rows, in bytes.
type RowSteps struct{ Time, Batch int }

// Prepare sets the distances that are zero.
func (r *Reverse) Prepare() {
	even := RowSteps{Time: r.Batch * r.Inner, Batch: r.Inner}
	if r.BatchFirst {
		even = RowSteps{Time: r.Inner, Batch: r.Time * r.Inner}
	}
	for _, s := range [...]*RowSteps{&r.Dst, &r.Src} {
		if *s == (RowSteps{}) {
			*s = even
		}
	}
}

// source returns which row of the result row is, and the time of the row of the
// operand that it becomes.
func (r *Reverse) source(row int, lengths []int64) (time, batch, from int) {
	time, batch = row/r.Batch, row%r.Batch
	if r.BatchFirst {
		batch, time = row/r.Time, row%r.Time
	}
	if n := int(lengths[batch]); time < n {
		return time, batch, n - 1 - time
	}
	return time, batch, time
}

// ReverseRows computes rows [lo, hi); lengths has one number per sequence, from
// 0 to Time.
func ReverseRows(r *Reverse, lo, hi int, dst, src []byte, lengths []int64) {
	for row := lo; row < hi; row++ {
		time, batch, from := r.source(row, lengths)
		copy(dst[time*r.Dst.Time+batch*r.Dst.Batch:][:r.Inner], src[from*r.Src.Time+batch*r.Src.Batch:])
	}
}

// ReverseInPlace exchanges the rows [lo, hi) of data with those that they
// change places with, where these come later. All rows in ranges that do not
// overlap are what ReverseRows computes.
func ReverseInPlace(r *Reverse, lo, hi int, data []byte, lengths []int64) {
	for row := lo; row < hi; row++ {
		if time, batch, other := r.source(row, lengths); other > time {
			at := batch * r.Dst.Batch
			swapBytes(data[at+time*r.Dst.Time:][:r.Inner], data[at+other*r.Dst.Time:][:r.Inner])
		}
	}
}

// swapBytes exchanges the contents of two slices of one length.
func swapBytes(a, b []byte) {
	var kept [512]byte
	for len(a) > 0 {
		n := copy(kept[:], a)
		copy(a[:n], b)
		copy(b, kept[:n])
		a, b = a[n:], b[n:]
	}
}
