package ref

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/tenure-go/tenure/dtype"
)

// Value is an exact element of any numeric type. Float is nil for NaN.
type Value struct {
	Float *big.Float // may be infinite, and negative zero
	Int   bool       // of an integer type
}

func (v Value) String() string {
	if v.Float == nil {
		return "NaN"
	}
	return v.Float.String()
}

func valueOf(f float64) Value {
	if math.IsNaN(f) {
		return Value{}
	}
	return Value{Float: new(big.Float).SetPrec(200).SetFloat64(f)}
}

// Bits returns the bit pattern of element i.
func Bits(dt dtype.DType, data []byte, i int) uint64 {
	switch dt.Size() {
	case 0:
		return uint64(dt.PackedAt(data, i))
	case 1:
		return uint64(data[i])
	case 2:
		return uint64(binary.NativeEndian.Uint16(data[2*i:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(data[4*i:]))
	}
	return binary.NativeEndian.Uint64(data[8*i:])
}

// Decode reads element i.
func Decode(dt dtype.DType, data []byte, i int) Value { return decode(dt, Bits(dt, data, i)) }

func decode(dt dtype.DType, b uint64) Value {
	if dt.IsInt() {
		n := new(big.Int).SetUint64(b)
		if dt.IsSigned() && b>>(dt.Bits()-1) == 1 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(dt.Bits())))
		}
		return Value{new(big.Float).SetPrec(200).SetInt(n), true}
	}
	var f float32
	switch dt {
	case dtype.Bool:
		if b != 0 {
			f = 1
		}
	case dtype.F64:
		return valueOf(math.Float64frombits(b))
	case dtype.F32:
		f = math.Float32frombits(uint32(b))
	case dtype.F16:
		f = dtype.Float16(b).Float32()
	case dtype.BF16:
		f = dtype.BFloat16(b).Float32()
	case dtype.F8E4M3FN:
		f = dtype.Float8E4M3FN(b).Float32()
	case dtype.F8E4M3FNUZ:
		f = dtype.Float8E4M3FNUZ(b).Float32()
	case dtype.F8E5M2:
		f = dtype.Float8E5M2(b).Float32()
	case dtype.F8E5M2FNUZ:
		f = dtype.Float8E5M2FNUZ(b).Float32()
	case dtype.F8E8M0:
		f = dtype.Float8E8M0(b).Float32()
	case dtype.F8E3M4:
		f = dtype.Float8E3M4(b).Float32()
	case dtype.F8E4M3:
		f = dtype.Float8E4M3(b).Float32()
	case dtype.F8E4M3B11FNUZ:
		f = dtype.Float8E4M3B11FNUZ(b).Float32()
	case dtype.F4E2M1:
		f = dtype.Float4E2M1FromBits(uint8(b)).Float32()
	case dtype.F6E2M3FN:
		f = dtype.Float6E2M3FNFromBits(uint8(b)).Float32()
	case dtype.F6E3M2FN:
		f = dtype.Float6E3M2FNFromBits(uint8(b)).Float32()
	default:
		panic("ref: cannot decode " + dt.String())
	}
	return valueOf(float64(f))
}

// SameBits tells whether element i has the wanted pattern; any NaN stands for
// any other.
func SameBits(dt dtype.DType, data []byte, i int, want uint64) bool {
	got := Bits(dt, data, i)
	return got == want || dt.IsFloat() && decode(dt, got).Float == nil && decode(dt, want).Float == nil
}

// Cast returns the bit pattern of v in another type.
func Cast(v Value, to dtype.DType, saturate bool, round dtype.RoundMode) uint64 {
	switch {
	case to == dtype.Bool:
		if v.Float == nil || v.Float.Sign() != 0 {
			return 1
		}
		return 0
	case to.IsInt():
		return castInt(v, to)
	case to == dtype.F64:
		f := math.NaN()
		if v.Float != nil {
			f, _ = v.Float.Float64()
		}
		return math.Float64bits(f)
	case to == dtype.F32:
		f := float32(math.NaN())
		if v.Float != nil {
			f, _ = v.Float.Float32()
		}
		return uint64(math.Float32bits(f))
	case to == dtype.F8E8M0:
		return castPower(v, saturate, round)
	}
	return castNarrow(v, to, saturate)
}

func castInt(v Value, to dtype.DType) uint64 {
	if v.Float == nil {
		return 0
	}
	width := uint(max(32, to.Bits()))
	one := big.NewInt(1)
	low := new(big.Int).Neg(new(big.Int).Lsh(one, width-1))
	high := new(big.Int).Sub(new(big.Int).Lsh(one, width), one)
	if to.IsSigned() {
		high.Sub(new(big.Int).Lsh(one, width-1), one)
	}
	n := high
	if v.Float.IsInf() && v.Float.Signbit() {
		n = low
	} else if !v.Float.IsInf() {
		n, _ = v.Float.Int(nil)
		if to.Bits() < 8 {
			n = nearestEven(v.Float, n)
		}
	}
	if !v.Int { // an integer of a wider type wraps, only floats saturate
		if n.Cmp(high) > 0 {
			n = high
		}
		if n.Cmp(low) < 0 {
			n = low
		}
	}
	mask := new(big.Int).Sub(new(big.Int).Lsh(one, uint(to.Bits())), one)
	return new(big.Int).And(n, mask).Uint64()
}

// nearestEven is the integer next to f, of two the even one, given f without
// its fraction.
func nearestEven(f *big.Float, cut *big.Int) *big.Int {
	rest := new(big.Float).Sub(f, new(big.Float).SetInt(cut))
	half := rest.Abs(rest).Cmp(big.NewFloat(0.5))
	if half < 0 || half == 0 && cut.Bit(0) == 0 {
		return cut
	}
	return new(big.Int).Add(cut, big.NewInt(int64(f.Sign())))
}

// castPower finds the power of two with the exponent byte alone.
func castPower(v Value, saturate bool, round dtype.RoundMode) uint64 {
	const nan = 0xff
	power := func(code int) *big.Float { return new(big.Float).SetMantExp(big.NewFloat(1), code-127) }
	switch {
	case v.Float == nil || v.Float.Sign() < 0:
		return nan
	case v.Float.Cmp(power(0)) < 0:
		if saturate {
			return 0
		}
		return nan
	case v.Float.Cmp(power(254)) > 0:
		if saturate {
			return 254
		}
		return nan
	}
	code := 0
	for code < 254 && power(code+1).Cmp(v.Float) <= 0 {
		code++
	}
	if power(code).Cmp(v.Float) == 0 || round == dtype.RoundDown {
		return uint64(code)
	}
	middle := new(big.Float).Mul(power(code), big.NewFloat(1.5))
	if round == dtype.RoundUp || v.Float.Cmp(middle) >= 0 {
		code++
	}
	return uint64(code)
}
