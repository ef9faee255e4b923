package kernel

// expandCode is how many lanes a vector has, and what puts vectors of compressed floats together.
type expandCode struct {
	lanes  int
	floats func(dst []float32, src []byte, exponents Exponents)
}

var (
	expanding256 = expandCode{8, expandFloats256}
	expanding512 = expandCode{16, expandFloats512}
)

func (v *expandCode) install() { expandLanes, expandFloats = v.lanes, v.floats }

// expandTable has every exponent twice, so that an index may have a bit too many.
type expandTable [2 * ExponentCodes]uint32

func tableOf(exponents Exponents) (t expandTable) {
	for i, e := range exponents {
		t[i], t[ExponentCodes+i] = uint32(e)<<23, uint32(e)<<23
	}
	return t
}

// expandVectors is how many vectors of floats there are, an even number: the loops stop at no other.
func expandVectors(n int) int {
	if n == 0 || n%(2*expandLanes) != 0 {
		bug("compressed floats: %d of them in pairs of vectors of %d", n, expandLanes)
	}
	return n / expandLanes
}

func expandFloats256(dst []float32, src []byte, exponents Exponents) {
	t := tableOf(exponents)
	expand256(expandVectors(len(dst)), &dst[0], &src[0], &t[0])
}

func expandFloats512(dst []float32, src []byte, exponents Exponents) {
	t := tableOf(exponents)
	expand512(expandVectors(len(dst)), &dst[0], &src[0], &t[0])
}
