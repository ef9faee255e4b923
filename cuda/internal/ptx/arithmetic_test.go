package ptx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// row is an instruction with the types of its result and operands, and what it
// gives: want takes and returns the bits of registers.
type row struct {
	op    string
	types string // result first; p is a predicate
	want  func(x [4]uint64) uint64
}

func bytesOf(t string) int {
	if t == "p" {
		return 4
	}
	n := 0
	fmt.Sscanf(strings.TrimLeft(t, "busf"), "%d", &n)
	return n / 8
}

// rowsText has a kernel for each row. A thread loads its operands from 32 bytes
// and stores the result as 8.
func rowsText(rows []row) string {
	var b strings.Builder
	b.WriteString(header)
	for i, r := range rows {
		types := strings.Fields(r.types)
		fmt.Fprintf(&b, ".visible .entry k%d(.param .u64 in, .param .u64 out)\n{\n\t.reg .u64 %%in, %%out;\n\t.reg .b64 %%wide;\n\t.reg .u32 %%i, %%t;\n", i)
		b.WriteString("\tld.param.u64 %in, [in];\n\tld.param.u64 %out, [out];\n\tmov.u32 %i, %tid.x;\n\tmad.wide.u32 %in, %i, 32, %in;\n\tmad.wide.u32 %out, %i, 8, %out;\n")
		names := make([]string, len(types))
		for j, t := range types {
			names[j] = fmt.Sprintf("%%x%d", j)
			if t == "p" {
				fmt.Fprintf(&b, "\t.reg .pred %s;\n", names[j])
			} else {
				fmt.Fprintf(&b, "\t.reg .%s %s;\n", t, names[j])
			}
			if j > 0 && t == "p" {
				fmt.Fprintf(&b, "\tld.global.u32 %%t, [%%in+%d];\n\tsetp.ne.u32 %s, %%t, 0;\n", 8*(j-1), names[j])
			} else if j > 0 {
				fmt.Fprintf(&b, "\tld.global.b%d %s, [%%in+%d];\n", 8*bytesOf(t), names[j], 8*(j-1))
			}
		}
		fmt.Fprintf(&b, "\t%s %s;\n", r.op, strings.Join(names, ", "))
		switch types[0] {
		case "p":
			b.WriteString("\tselp.b64 %wide, 1, 0, %x0;\n\tst.global.b64 [%out], %wide;\n")
		default:
			fmt.Fprintf(&b, "\tst.global.b64 [%%out], 0;\n\tst.global.b%d [%%out], %%x0;\n", 8*bytesOf(types[0]))
		}
		b.WriteString("\tret;\n}\n")
	}
	return b.String()
}

// specials are operands around which results change their form.
var specials = []uint64{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
	0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff}

func operand(r *rand.Rand, t string) uint64 {
	v := r.Uint64()
	switch {
	case t == "f32":
		v = uint64(math.Float32bits(anyFloat32(r)))
	case t == "f64":
		v = math.Float64bits(anyFloat64(r))
	case t == "p":
		v &= 1
	case r.IntN(3) == 0:
		v = specials[r.IntN(len(specials))]
	case r.IntN(2) == 0:
		v >>= r.IntN(64)
	}
	return v & (math.MaxUint64 >> (64 - 8*bytesOf(t)))
}

const rowThreads, rowRounds = 256, 2

// check runs each row's kernel on drawn operands.
func check(t *testing.T, rows []row, zeroDivisors bool, compare func(t *testing.T, r row, x [4]uint64, got uint64) bool) {
	text := rowsText(rows)
	texts[t.Name()] = text
	rng := rand.New(rand.NewPCG(1, 2))
	for i, r := range rows {
		k := kernel(t, text, fmt.Sprint("k", i))
		types := strings.Fields(r.types)
		for range rowRounds {
			h := newHeap(rowThreads * 40)
			var in [rowThreads][4]uint64
			for j := range rowThreads {
				for n, ty := range types[1:] {
					for in[j][n] = operand(rng, ty); !zeroDivisors && n == 1 && in[j][n] == 0; {
						in[j][n] = operand(rng, ty)
					}
				}
				for n := range 4 {
					binary.LittleEndian.PutUint64(h.data[32*j+8*n:], in[j][n])
				}
			}
			h.MarkWritten(h.base, rowThreads*32)
			l := launch(h, 1, rowThreads, 0, arg(h.base, 8), arg(h.base+rowThreads*32, 8))
			rep, err := k.Run(l)
			if err == nil {
				err = rep.Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			for j := range rowThreads {
				if got := h.u64(rowThreads*4 + j); !compare(t, r, in[j], got) {
					t.Fatalf("%s of %#x: got %#x", r.op, in[j], got)
				}
			}
		}
	}
}

func same(t *testing.T, r row, x [4]uint64, got uint64) bool {
	want := r.want(x) & (math.MaxUint64 >> (64 - 8*bytesOf(strings.Fields(r.types)[0])))
	if got != want {
		t.Errorf("%s of %#x: got %#x, want %#x", r.op, x, got, want)
	}
	return got == want
}

// value is an operand as a number.
func value(x uint64, ty string) *big.Int {
	n := new(big.Int).SetUint64(x)
	if w := 8 * bytesOf(ty); ty[0] == 's' && x>>(w-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(w)))
	}
	return n
}

// low returns the lower 64 bits of a number in two's complement.
func low(n *big.Int) uint64 {
	m := new(big.Int).SetUint64(math.MaxUint64)
	return m.And(m, n).Uint64()
}

// intRows makes the rows of an operation on whole numbers of a type.
func intRows(ty string) []row {
	w := uint(8 * bytesOf(ty))
	two := func(op string, f func(z, a, b *big.Int) *big.Int) row {
		return row{op + "." + ty, strings.Repeat(ty+" ", 3), func(x [4]uint64) uint64 {
			return low(f(new(big.Int), value(x[0], ty), value(x[1], ty)))
		}}
	}
	mad := func(z *big.Int, x [4]uint64) *big.Int { return z.Mul(value(x[0], ty), value(x[1], ty)) }
	rows := []row{
		two("add", (*big.Int).Add), two("sub", (*big.Int).Sub), two("mul.lo", (*big.Int).Mul),
		two("mul.hi", func(z, a, b *big.Int) *big.Int { return z.Rsh(z.Mul(a, b), w) }),
		two("min", func(_, a, b *big.Int) *big.Int {
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		}),
		two("max", func(_, a, b *big.Int) *big.Int {
			if a.Cmp(b) > 0 {
				return a
			}
			return b
		}),
		{"mad.lo." + ty, strings.Repeat(ty+" ", 4), func(x [4]uint64) uint64 {
			return low(new(big.Int).Add(mad(new(big.Int), x), value(x[2], ty)))
		}},
		{"mad.hi." + ty, strings.Repeat(ty+" ", 4), func(x [4]uint64) uint64 {
			z := mad(new(big.Int), x)
			return low(z.Add(z.Rsh(z, w), value(x[2], ty)))
		}},
		{"shr." + ty, ty + " " + ty + " u32", func(x [4]uint64) uint64 { return low(new(big.Int).Rsh(value(x[0], ty), uint(min(x[1], 70)))) }},
	}
	if w < 64 {
		wide := fmt.Sprint(ty[:1], 2*w)
		rows = append(rows,
			row{"mul.wide." + ty, wide + " " + ty + " " + ty, func(x [4]uint64) uint64 { return low(mad(new(big.Int), x)) }},
			row{"mad.wide." + ty, wide + " " + ty + " " + ty + " " + wide, func(x [4]uint64) uint64 {
				z := mad(new(big.Int), x)
				return low(z.Add(z, value(x[2], wide)))
			}})
	}
	compare := map[string]func(c int) bool{"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 }, "lt": func(c int) bool { return c < 0 },
		"le": func(c int) bool { return c <= 0 }, "gt": func(c int) bool { return c > 0 }, "ge": func(c int) bool { return c >= 0 }}
	for name, f := range compare {
		rows = append(rows, row{"setp." + name + "." + ty, "p " + ty + " " + ty, func(x [4]uint64) uint64 {
			return b2i(f(value(x[0], ty).Cmp(value(x[1], ty))))
		}})
	}
	return rows
}

func b2i(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func TestIntegers(t *testing.T) {
	var rows []row
	for _, ty := range []string{"u16", "u32", "u64", "s16", "s32", "s64"} {
		rows = append(rows, intRows(ty)...)
	}
	for _, ty := range []string{"s16", "s32", "s64"} {
		rows = append(rows, row{"neg." + ty, ty + " " + ty, func(x [4]uint64) uint64 { return -x[0] }},
			row{"abs." + ty, ty + " " + ty, func(x [4]uint64) uint64 { n := value(x[0], ty); return low(n.Abs(n)) }})
	}
	check(t, rows, true, same)
}

func TestDivision(t *testing.T) {
	var rows []row
	for _, ty := range []string{"u16", "u32", "u64", "s16", "s32", "s64"} {
		rows = append(rows, row{"div." + ty, strings.Repeat(ty+" ", 3), func(x [4]uint64) uint64 { return low(new(big.Int).Quo(value(x[0], ty), value(x[1], ty))) }},
			row{"rem." + ty, strings.Repeat(ty+" ", 3), func(x [4]uint64) uint64 { return low(new(big.Int).Rem(value(x[0], ty), value(x[1], ty))) }})
	}
	check(t, rows, false, same)
}

// field moves bits one by one, as the ISA's text does.
func field(x [4]uint64, w int, signed bool) uint64 {
	pos, n := int(x[1]&0xff), int(x[2]&0xff)
	sign := uint64(0)
	if signed && n > 0 {
		sign = x[0] >> min(pos+n-1, w-1) & 1
	}
	r := -sign
	for i := 0; i < n && i < w && pos+i < w; i++ {
		r = r&^(1<<i) | x[0]>>(pos+i)&1<<i
	}
	return r
}

func inserted(x [4]uint64, w int) uint64 {
	r := x[1]
	for i := 0; i < int(x[3]&0xff) && int(x[2]&0xff)+i < w; i++ {
		to := int(x[2]&0xff) + i
		r = r&^(1<<to) | x[0]>>i&1<<to
	}
	return r
}

func permuted(x [4]uint64) uint64 {
	var source [8]byte
	binary.LittleEndian.PutUint32(source[:], uint32(x[0]))
	binary.LittleEndian.PutUint32(source[4:], uint32(x[1]))
	var r uint64
	for i := range 4 {
		n := x[2] >> (4 * i)
		v := source[n&7]
		if n&8 != 0 {
			v = byte(int8(v) >> 7)
		}
		r |= uint64(v) << (8 * i)
	}
	return r
}

func TestBits(t *testing.T) {
	var rows []row
	for _, ty := range []string{"b16", "b32", "b64"} {
		three := strings.Repeat(ty+" ", 3)
		rows = append(rows,
			row{"and." + ty, three, func(x [4]uint64) uint64 { return x[0] & x[1] }},
			row{"or." + ty, three, func(x [4]uint64) uint64 { return x[0] | x[1] }},
			row{"xor." + ty, three, func(x [4]uint64) uint64 { return x[0] ^ x[1] }},
			row{"not." + ty, ty + " " + ty, func(x [4]uint64) uint64 { return ^x[0] }},
			row{"shl." + ty, ty + " " + ty + " u32", func(x [4]uint64) uint64 { return x[0] << min(x[1], 64) }},
			row{"selp." + ty, three + " p", func(x [4]uint64) uint64 { return x[1-x[2]] }},
			row{"mov." + ty, ty + " " + ty, func(x [4]uint64) uint64 { return x[0] }})
	}
	rows = append(rows,
		row{"popc.b32", "u32 b32", func(x [4]uint64) uint64 { return uint64(bits.OnesCount64(x[0])) }},
		row{"popc.b64", "u32 b64", func(x [4]uint64) uint64 { return uint64(bits.OnesCount64(x[0])) }},
		row{"clz.b32", "u32 b32", func(x [4]uint64) uint64 { return uint64(32 - bits.Len64(x[0])) }},
		row{"clz.b64", "u32 b64", func(x [4]uint64) uint64 { return uint64(64 - bits.Len64(x[0])) }},
		row{"brev.b32", "b32 b32", func(x [4]uint64) uint64 { return bits.Reverse64(x[0]) >> 32 }},
		row{"brev.b64", "b64 b64", func(x [4]uint64) uint64 { return bits.Reverse64(x[0]) }},
		row{"bfe.u32", "u32 u32 u32 u32", func(x [4]uint64) uint64 { return field(x, 32, false) }},
		row{"bfe.u64", "u64 u64 u32 u32", func(x [4]uint64) uint64 { return field(x, 64, false) }},
		row{"bfe.s32", "s32 s32 u32 u32", func(x [4]uint64) uint64 { return field(x, 32, true) }},
		row{"bfe.s64", "s64 s64 u32 u32", func(x [4]uint64) uint64 { return field(x, 64, true) }},
		row{"bfi.b32", "b32 b32 b32 u32 u32", func(x [4]uint64) uint64 { return inserted(x, 32) }},
		row{"bfi.b64", "b64 b64 b64 u32 u32", func(x [4]uint64) uint64 { return inserted(x, 64) }},
		row{"prmt.b32", "b32 b32 b32 b32", permuted},
		row{"and.pred", "p p p", func(x [4]uint64) uint64 { return x[0] & x[1] }},
		row{"or.pred", "p p p", func(x [4]uint64) uint64 { return x[0] | x[1] }},
		row{"xor.pred", "p p p", func(x [4]uint64) uint64 { return x[0] ^ x[1] }},
		row{"not.pred", "p p", func(x [4]uint64) uint64 { return x[0] ^ 1 }},
		row{"mov.pred", "p p", func(x [4]uint64) uint64 { return x[0] }},
		row{"setp.lo.and.u32", "p u32 u32 p", func(x [4]uint64) uint64 { return b2i(x[0] < x[1]) & x[2] }},
		row{"setp.hs.or.u32", "p u32 u32 p", func(x [4]uint64) uint64 { return b2i(x[0] >= x[1]) | x[2] }},
		row{"setp.eq.xor.b64", "p b64 b64 p", func(x [4]uint64) uint64 { return b2i(x[0] == x[1]) ^ x[2] }},
		row{"add.sat.s32", "s32 s32 s32", func(x [4]uint64) uint64 { return saturated(int64(int32(x[0])) + int64(int32(x[1]))) }},
		row{"sub.sat.s32", "s32 s32 s32", func(x [4]uint64) uint64 { return saturated(int64(int32(x[0])) - int64(int32(x[1]))) }})
	check(t, rows, true, same)
}

func saturated(v int64) uint64 { return uint64(max(min(v, math.MaxInt32), math.MinInt32)) }
