package sequence

import "github.com/tenure-go/tenure/internal/kernel"

// Rows says where the rows of all heads of an operand or a result lie: the
// elements from one sample, head or row to the next. Those of a row follow each
// other.
type Rows struct{ Sample, Head, Row int }

// At is where a row begins.
func (r *Rows) At(sample, head, row int) int { return sample*r.Sample + head*r.Head + row*r.Row }

// RowsOf are those of [batch, heads, length, size], or of [batch, length, heads
// * size] if packed, without gaps.
func RowsOf(heads, length, size int, packed bool) Rows {
	if packed {
		return Rows{Sample: heads * length * size, Head: size, Row: heads * size}
	}
	return Rows{Sample: heads * length * size, Head: length * size, Row: size}
}

// Rotary turns pairs of numbers of heads: the first Half of a head with the
// Half after it, or neighbours if Interleaved. The rest of a head stays. The
// output may be the operand.
type Rotary struct {
	Batch, Length, Heads, Size, Half int
	Packed, Interleaved              bool

	PlaceX, PlaceY Rows // where the operand and the result lie: see Lay
}

// Lay sets the places of an operand and a result without gaps.
func (r *Rotary) Lay() {
	r.PlaceX = RowsOf(r.Heads, r.Length, r.Size, r.Packed)
	r.PlaceY = r.PlaceX
}

// Rows is how many heads there are at all positions.
func (r *Rotary) Rows() int { return r.Batch * r.Length * r.Heads }

// RotaryRows turns rows [lo, hi). The angles are one row of Half per sample and
// position, or the rows that the positions name.
func RotaryRows[T kernel.Float](r *Rotary, lo, hi int, dst, src, cos, sin []T, positions []int64) {
	for row := lo; row < hi; row++ {
		var sample, head, at int
		if r.Packed {
			sample, at, head = row/r.Heads/r.Length, row/r.Heads%r.Length, row%r.Heads
		} else {
			sample, head, at = row/r.Length/r.Heads, row/r.Length%r.Heads, row%r.Length
		}
		place := sample*r.Length + at
		if positions != nil {
			place = int(positions[place])
		}
		c, s := cos[place*r.Half:][:r.Half], sin[place*r.Half:][:r.Half]
		d, x := dst[r.PlaceY.At(sample, head, at):][:r.Size], src[r.PlaceX.At(sample, head, at):][:r.Size]
		first, step := r.Half, 1
		if r.Interleaved {
			first, step = 1, 2
		}
		for i := range r.Half {
			a, b := x[i*step], x[i*step+first]
			d[i*step], d[i*step+first] = c[i]*a-s[i]*b, s[i]*a+c[i]*b
		}
		copy(d[2*r.Half:], x[2*r.Half:])
	}
}
