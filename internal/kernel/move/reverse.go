package move

// Reverse turns the first elements of each sequence round: rows of Inner bytes
// lie in [Time, Batch], or in [Batch, Time].
type Reverse struct {
	Time, Batch, Inner int
	BatchFirst         bool
}

// ReverseRows computes rows [lo, hi); lengths has one number per sequence, from
// 0 to Time.
func ReverseRows(r *Reverse, lo, hi int, dst, src []byte, lengths []int64) {
	for row := lo; row < hi; row++ {
		time, batch := row/r.Batch, row%r.Batch
		if r.BatchFirst {
			batch, time = row/r.Time, row%r.Time
		}
		if n := int(lengths[batch]); time < n {
			time = n - 1 - time
		}
		from := time*r.Batch + batch
		if r.BatchFirst {
			from = batch*r.Time + time
		}
		copy(dst[row*r.Inner:(row+1)*r.Inner], src[from*r.Inner:])
	}
}
