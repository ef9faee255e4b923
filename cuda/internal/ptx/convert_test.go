package ptx_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

// TestConvert checks cvt between all types against the definition.
func TestConvert(t *testing.T) {
	ints := []string{"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"}
	register := func(ty string) string {
		if n := bytesOf(strings.TrimPrefix(ty, "b")); n > 2 {
			return ty
		}
		return "b16"
	}
	var rows []row
	add := func(mods, to, from string) {
		rows = append(rows, row{op: "cvt" + mods + "." + to + "." + from, types: register(to) + " " + register(from)})
	}
	for _, to := range ints {
		for _, from := range ints {
			add("", to, from)
			if n, m := bytesOf(to), bytesOf(from); n < m || n == m && to != from || to[0] == 'u' && from[0] == 's' {
				add(".sat", to, from)
			}
		}
		for _, f := range []string{"f16", "f32", "f64"} {
			for _, mode := range []string{"rn", "rz", "rm", "rp"} {
				add("."+mode+"i", to, f)
				add("."+mode, f, to)
			}
		}
	}
	for _, mode := range []string{"rn", "rz", "rm", "rp"} {
		add("."+mode, "f16", "f32")
		add("."+mode, "f16", "f64")
		add("."+mode, "f32", "f64")
		add("."+mode+"i", "f32", "f32")
		add("."+mode+"i", "f64", "f64")
	}
	add(".rn", "bf16", "f32")
	add(".rz", "bf16", "f32")
	add("", "f32", "f16")
	add("", "f64", "f16")
	add("", "f64", "f32")
	check(t, rows, true, converted)
}

func converted(t *testing.T, r row, x [4]uint64, got uint64) bool {
	parts := strings.Split(r.op, ".")
	mode, to, from := parts[1], parts[len(parts)-2], parts[len(parts)-1]
	source, isFloat := kinds[from]
	target, toFloat := kinds[to]
	var exact *big.Rat
	var f float64
	if isFloat {
		if f = source.value(x[0]); f-f != 0 {
			return convertedSpecial(f, to, from, got)
		}
		exact = at64(f)
	} else {
		n := 8 * bytesOf(from)
		exact = new(big.Rat).SetInt(value(x[0]&(math.MaxUint64>>(64-n)), from))
	}
	integral := strings.HasSuffix(mode, "i")
	if integral {
		exact = wholeOf(exact, mode)
	}
	if toFloat {
		if exact.Sign() == 0 {
			return target.value(got) == 0 && math.Signbit(target.value(got)) == math.Signbit(f)
		}
		if len(parts) == 3 {
			mode = "rn"
		}
		return rounded(target, got, strings.TrimSuffix(mode, "i"), exact.Cmp)
	}
	n := uint(8 * bytesOf(to))
	v := new(big.Int).Set(exact.Num())
	if isFloat || mode == "sat" {
		lowest, highest := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), n)
		if to[0] == 's' {
			highest.Rsh(highest, 1)
			lowest.Neg(highest)
		}
		if highest.Sub(highest, big.NewInt(1)); v.Cmp(highest) > 0 {
			v = highest
		} else if v.Cmp(lowest) < 0 {
			v = lowest
		}
	}
	want := low(v) & (math.MaxUint64 >> (64 - n))
	if to[0] == 's' && n == 8 {
		want = uint64(uint16(int8(want)))
	}
	if got != want {
		t.Errorf("%s of %#x: got %#x, want %#x", r.op, x[0], got, want)
	}
	return got == want
}

// convertedSpecial checks what becomes of infinities and NaN.
func convertedSpecial(f float64, to, from string, got uint64) bool {
	if k, ok := kinds[to]; ok {
		v := k.value(got)
		return v == f || math.IsNaN(f) && math.IsNaN(v)
	}
	n := 8 * bytesOf(to)
	want := uint64(math.MaxUint64 >> (64 - n))
	switch {
	case math.IsNaN(f):
		want = 0
		if from == "f64" || n == 64 {
			want = 1 << (n - 1)
		}
	case to[0] == 's' && f > 0:
		want >>= 1
	case to[0] == 's':
		want = 1 << (n - 1)
	case f < 0:
		want = 0
	}
	if to == "s8" {
		want = uint64(uint16(int8(want)))
	}
	return got == want
}

// wholeOf rounds to a whole number.
func wholeOf(x *big.Rat, mode string) *big.Rat {
	floor := new(big.Int).Div(x.Num(), x.Denom()) // Euclid's, and the divisor is positive
	rest := new(big.Rat).Sub(x, new(big.Rat).SetInt(floor))
	upwards := false
	switch c := rest.Cmp(big.NewRat(1, 2)); mode {
	case "rni":
		upwards = c > 0 || c == 0 && floor.Bit(0) == 1
	case "rzi":
		upwards = x.Sign() < 0 && rest.Sign() > 0
	case "rpi":
		upwards = rest.Sign() > 0
	}
	if upwards {
		floor.Add(floor, big.NewInt(1))
	}
	return new(big.Rat).SetInt(floor)
}
