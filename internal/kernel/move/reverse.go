package move

// Reverse turns the first elements of each sequence round: rows of Inner bytes
// lie in [Time, Batch], or in [Batch, Time].
type Reverse struct {
	Time, Batch, Inner int
	BatchFirst         bool
}

// source returns the row of the operand that becomes a row of the result.
func (r *Reverse) source(row int, lengths []int64) (from int) {
	time, batch := row/r.Batch, row%r.Batch
	if r.BatchFirst {
		batch, time = row/r.Time, row%r.Time
	}
	if n := int(lengths[batch]); time < n {
		time = n - 1 - time
	}
	if r.BatchFirst {
		return batch*r.Time + time
	}
	return time*r.Batch + batch
}

// ReverseRows computes rows [lo, hi); lengths has one number per sequence, from
// 0 to Time.
func ReverseRows(r *Reverse, lo, hi int, dst, src []byte, lengths []int64) {
	for row := lo; row < hi; row++ {
		from := r.source(row, lengths)
		copy(dst[row*r.Inner:(row+1)*r.Inner], src[from*r.Inner:])
	}
}

// ReverseInPlace exchanges the rows [lo, hi) of data with those that they
// change places with, where these come later. All rows in ranges that do not
// overlap are what ReverseRows computes.
func ReverseInPlace(r *Reverse, lo, hi int, data []byte, lengths []int64) {
	for row := lo; row < hi; row++ {
		if other := r.source(row, lengths); other > row {
			swapBytes(data[row*r.Inner:(row+1)*r.Inner], data[other*r.Inner:(other+1)*r.Inner])
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
