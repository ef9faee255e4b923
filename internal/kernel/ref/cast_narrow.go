package ref

import (
	"math/big"

	"github.com/tenure-go/tenure/dtype"
)

// narrowFormat lists the finite numbers of a type that are not negative,
// smallest first; the pattern of each is its index. Every narrow float is laid
// out so.
var narrowFormats = map[dtype.DType][]*big.Float{}

func narrowFormat(dt dtype.DType) []*big.Float {
	if f, ok := narrowFormats[dt]; ok {
		return f
	}
	var f []*big.Float
	for code := range uint64(1) << (dt.Bits() - 1) {
		if v := decode(dt, code); v.Float != nil && !v.Float.IsInf() {
			f = append(f, v.Float)
		}
	}
	narrowFormats[dt] = f
	return f
}

// castNarrow looks for the nearest number of the type; of two, the one with the
// even pattern.
func castNarrow(v Value, to dtype.DType, saturate bool) uint64 {
	sign := uint64(1) << (to.Bits() - 1)
	if v.Float == nil {
		return narrowNaN(to)
	}
	if !v.Float.Signbit() {
		sign = 0
	}
	format := narrowFormat(to)
	last := len(format) - 1
	mag := new(big.Float).Abs(v.Float)
	if tooLarge(mag, format) {
		switch to {
		case dtype.F16, dtype.BF16:
			return sign | uint64(last+1)
		case dtype.F4E2M1, dtype.F6E2M3FN, dtype.F6E3M2FN:
			return sign | uint64(last)
		}
		if saturate {
			return sign | uint64(last)
		}
		switch to {
		case dtype.F8E5M2, dtype.F8E3M4, dtype.F8E4M3:
			return sign | uint64(last+1)
		}
		return narrowNaN(to)
	}
	low, high := 0, last // format[low] <= mag; nothing above high is nearer
	for high-low > 1 {
		if mid := (low + high) / 2; format[mid].Cmp(mag) <= 0 {
			low = mid
		} else {
			high = mid
		}
	}
	code := low
	below, above := new(big.Float).Sub(mag, format[low]), new(big.Float).Sub(format[high], mag)
	if c := above.Cmp(below); c < 0 || c == 0 && high%2 == 0 {
		code = high
	}
	if code == 0 && noNegativeZero(to) {
		return 0
	}
	return sign | uint64(code)
}

// tooLarge tells whether mag would round to the number that would follow the
// largest one.
func tooLarge(mag *big.Float, format []*big.Float) bool {
	last := len(format) - 1
	if mag.IsInf() {
		return true
	}
	step := new(big.Float).Sub(format[last], format[last-1])
	middle := new(big.Float).Add(format[last], step.Quo(step, big.NewFloat(2)))
	c := mag.Cmp(middle)
	return c > 0 || c == 0 && last%2 == 1
}

func noNegativeZero(dt dtype.DType) bool {
	return dt == dtype.F8E4M3FNUZ || dt == dtype.F8E5M2FNUZ || dt == dtype.F8E4M3B11FNUZ
}

// narrowNaN is one of the type's NaNs; negative zero where it has none.
func narrowNaN(dt dtype.DType) uint64 {
	for code := range uint64(1) << dt.Bits() {
		if decode(dt, code).Float == nil {
			return code
		}
	}
	return 1 << (dt.Bits() - 1)
}
