package kernels

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// convertTypes are those between which there are conversions. Those of less
// than 16 bits other than i8, u8 and bool need tables and are left to the host;
// a type to itself is a copy.
var convertTypes = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I8, dtype.I16, dtype.I32, dtype.I64,
	dtype.U8, dtype.U16, dtype.U32, dtype.U64, dtype.Bool}

func convertName(to, from dtype.DType) string { return fmt.Sprintf("convert_%s_%s", from, to) }

func conversions() []*Kernel {
	operands := []Param{address("dst", false, true), address("src", true, false)}
	var all []*Kernel
	for _, from := range convertTypes {
		for _, to := range convertTypes {
			if from == to {
				continue
			}
			class, load := loadAs(from, "%at_src")
			params, text := strided(operands, "", load+storeAs(to, class))
			all = append(all, &Kernel{Name: convertName(to, from), Module: "convert_" + from.String(), Family: FamilyConvert,
				From: from, To: to, Size: to.Size(), Per: "n", Params: params, body: text})
		}
	}
	return all
}

// loadAs loads an element into %x32 or %x64, as the type class, one of s32,
// u32, s64, u64, f32 and f64, which has every value of the type.
func loadAs(from dtype.DType, at string) (class, text string) {
	switch from {
	case dtype.I8, dtype.I16, dtype.I32:
		return "s32", fmt.Sprintf("\tld.global.s%d %%x32, [%s];\n", from.Bits(), at)
	case dtype.U8, dtype.U16, dtype.U32:
		return "u32", fmt.Sprintf("\tld.global.u%d %%x32, [%s];\n", from.Bits(), at)
	case dtype.I64:
		return "s64", fmt.Sprintf("\tld.global.b64 %%x64, [%s];\n", at)
	case dtype.U64:
		return "u64", fmt.Sprintf("\tld.global.b64 %%x64, [%s];\n", at)
	case dtype.Bool:
		return "u32", fmt.Sprintf("\tld.global.u8 %%x32, [%s];\n\tsetp.ne.u32 %%p0, %%x32, 0;\n\tselp.u32 %%x32, 1, 0, %%p0;\n", at)
	case dtype.F64:
		return "f64", fmt.Sprintf("\tld.global.b64 %%x64, [%s];\n", at)
	case dtype.F32:
		return "f32", fmt.Sprintf("\tld.global.b32 %%x32, [%s];\n", at)
	case dtype.BF16:
		return "f32", fmt.Sprintf("\tld.global.u16 %%x32, [%s];\n\tshl.b32 %%x32, %%x32, 16;\n", at)
	}
	return "f32", fmt.Sprintf("\tld.global.b16 %%h0, [%s];\n%s", at, halfToSingle)
}

// halfToSingle widens %h0 into %x32. The instruction does not keep the bits of
// a NaN, so they are moved apart: quiet, with its sign and payload.
const halfToSingle = `	cvt.f32.f16 %x32, %h0;
	cvt.u32.u16 %a0, %h0;
	and.b32 %a1, %a0, 0x7fff;
	setp.gt.u32 %nan, %a1, 0x7c00;
	shl.b32 %a1, %a0, 13;
	and.b32 %a1, %a1, 0x007fe000;
	and.b32 %a2, %a0, 0x8000;
	shl.b32 %a2, %a2, 16;
	or.b32 %a1, %a1, %a2;
	or.b32 %a1, %a1, 0x7fc00000;
	selp.b32 %x32, %a1, %x32, %nan;
`

// singleToHalf rounds %x32 into %h0, and moves the bits of a NaN.
const singleToHalf = `	cvt.rn.f16.f32 %h0, %x32;
	and.b32 %a1, %x32, 0x7fffffff;
	setp.gt.u32 %nan, %a1, 0x7f800000;
	shr.u32 %a1, %x32, 13;
	and.b32 %a1, %a1, 0x3ff;
	shr.u32 %a2, %x32, 16;
	and.b32 %a2, %a2, 0x8000;
	or.b32 %a1, %a1, %a2;
	or.b32 %a1, %a1, 0x7e00;
	cvt.u16.u32 %h1, %a1;
	selp.b16 %h0, %h1, %h0, %nan;
`

// singleToBrain rounds %x32 into the lower half of %x32: with half a unit less
// one and the last bit that is kept added, the carry rounds to nearest even.
// sm_70 has no instruction for it.
const singleToBrain = `	and.b32 %a1, %x32, 0x7fffffff;
	setp.gt.u32 %nan, %a1, 0x7f800000;
	shr.u32 %a1, %x32, 16;
	and.b32 %a2, %a1, 1;
	add.u32 %a2, %a2, 0x7fff;
	add.u32 %a2, %a2, %x32;
	shr.u32 %a2, %a2, 16;
	or.b32 %a1, %a1, 0x40;
	selp.b32 %x32, %a1, %a2, %nan;
`

// doubleNaN moves the NaN in %x64 into %a3, where %nan is set.
const doubleNaN = `	setp.nan.f64 %nan, %x64, %x64;
	shr.u64 %c0, %x64, 29;
	cvt.u32.u64 %a3, %c0;
	and.b32 %a3, %a3, 0x003fffff;
	shr.u64 %c0, %x64, 32;
	cvt.u32.u64 %a4, %c0;
	and.b32 %a4, %a4, 0x80000000;
	or.b32 %a3, %a3, %a4;
	or.b32 %a3, %a3, 0x7fc00000;
`

// doubleToSingle rounds %x64 into %x32.
const doubleToSingle = doubleNaN + `	cvt.rn.f32.f64 %x32, %x64;
	selp.b32 %x32, %a3, %x32, %nan;
`

// doubleToOdd rounds %x64 to odd into %x32: toward zero, with the last bit set
// if anything was lost. A second rounding, to 16 bits, is then right.
const doubleToOdd = doubleNaN + `	cvt.rz.f32.f64 %x32, %x64;
	cvt.f64.f32 %c0, %x32;
	setp.neu.f64 %p0, %c0, %x64;
	or.b32 %a4, %x32, 1;
	selp.b32 %x32, %a4, %x32, %p0;
	selp.b32 %x32, %a3, %x32, %nan;
`

// singleToDouble widens %x32 into %x64, and moves the bits of a NaN.
const singleToDouble = `	cvt.f64.f32 %x64, %x32;
	setp.nan.f32 %nan, %x32, %x32;
	and.b32 %a1, %x32, 0x007fffff;
	cvt.u64.u32 %c0, %a1;
	shl.b64 %c0, %c0, 29;
	and.b32 %a1, %x32, 0x80000000;
	cvt.u64.u32 %c1, %a1;
	shl.b64 %c1, %c1, 32;
	or.b64 %c0, %c0, %c1;
	or.b64 %c0, %c0, 0x7ff8000000000000;
	selp.b64 %x64, %c0, %x64, %nan;
`

// storeAs converts the element that loadAs left, and stores it at %at_dst.
func storeAs(to dtype.DType, class string) string {
	x, zero := "%x32", "0"
	if strings.HasSuffix(class, "64") {
		x = "%x64"
	}
	isFloat := class[0] == 'f'
	switch {
	case to == dtype.Bool && isFloat:
		zero = map[string]string{"f32": "0f00000000", "f64": "0d0000000000000000"}[class]
		return fmt.Sprintf("\tsetp.neu.%s %%p0, %s, %s;\n\tselp.u32 %%x32, 1, 0, %%p0;\n\tst.global.b8 [%%at_dst], %%x32;\n", class, x, zero)
	case to == dtype.Bool:
		return fmt.Sprintf("\tsetp.ne.%s %%p0, %s, %s;\n\tselp.u32 %%x32, 1, 0, %%p0;\n\tst.global.b8 [%%at_dst], %%x32;\n", class, x, zero)
	case to.IsInt() && isFloat:
		return truncated(to, class, x)
	case to.IsInt():
		return resized(to, class, x)
	case isFloat:
		return floatFromFloat(to, class)
	}
	return floatFromInt(to, class, x)
}

func resized(to dtype.DType, class, x string) string {
	if to.Bits() == 64 && x == "%x32" {
		return fmt.Sprintf("\tcvt.%s64.%s %%x64, %%x32;\n\tst.global.b64 [%%at_dst], %%x64;\n", class[:1], class)
	}
	return fmt.Sprintf("\tst.global.b%d [%%at_dst], %s;\n", to.Bits(), x)
}

// truncated drops the fraction of a float. What is out of range saturates at 32
// bits, or 64 for a wider type, and keeps its lower bits; below zero an
// unsigned type saturates as the signed one does. NaN is 0, which the
// instruction does not give for every pair of types.
func truncated(to dtype.DType, class, x string) string {
	nan := fmt.Sprintf("\tsetp.nan.%s %%nan, %s, %s;\n", class, x, x)
	switch {
	case to.Bits() == 64 && to.IsSigned():
		return nan + fmt.Sprintf("\tcvt.rzi.s64.%s %%c0, %s;\n\tselp.b64 %%c0, 0, %%c0, %%nan;\n\tst.global.b64 [%%at_dst], %%c0;\n", class, x)
	case to.Bits() == 64:
		zero := map[string]string{"f32": "0f00000000", "f64": "0d0000000000000000"}[class]
		return nan + fmt.Sprintf(`	cvt.rzi.s64.%s %%c0, %s;
	cvt.rzi.u64.%s %%c1, %s;
	setp.lt.%s %%p0, %s, %s;
	selp.b64 %%c0, %%c0, %%c1, %%p0;
	selp.b64 %%c0, 0, %%c0, %%nan;
	st.global.b64 [%%at_dst], %%c0;
`, class, x, class, x, class, x, zero)
	case to.IsSigned():
		return nan + fmt.Sprintf("\tcvt.rzi.s32.%s %%a0, %s;\n\tselp.b32 %%a0, 0, %%a0, %%nan;\n\tst.global.b%d [%%at_dst], %%a0;\n", class, x, to.Bits())
	}
	return nan + fmt.Sprintf(`	cvt.rzi.s64.%s %%c0, %s;
	max.s64 %%c0, %%c0, -0x80000000;
	min.s64 %%c0, %%c0, 0xffffffff;
	selp.b64 %%c0, 0, %%c0, %%nan;
	st.global.b%d [%%at_dst], %%c0;
`, class, x, to.Bits())
}

func floatFromFloat(to dtype.DType, class string) string {
	const store16 = "\tst.global.b16 [%at_dst], %h0;\n"
	switch {
	case to == dtype.F64:
		return singleToDouble + "\tst.global.b64 [%at_dst], %x64;\n"
	case to == dtype.F32 && class == "f64":
		return doubleToSingle + "\tst.global.b32 [%at_dst], %x32;\n"
	case to == dtype.F32:
		return "\tst.global.b32 [%at_dst], %x32;\n"
	case to == dtype.F16 && class == "f64":
		return doubleToOdd + singleToHalf + store16
	case to == dtype.F16:
		return singleToHalf + store16
	case class == "f64":
		return doubleToOdd + singleToBrain + "\tst.global.b16 [%at_dst], %x32;\n"
	}
	return singleToBrain + "\tst.global.b16 [%at_dst], %x32;\n"
}

// floatFromInt rounds once. A half is infinite from 65520 on, so that an
// integer that is limited to 65536, which f32 has exactly, gives the same. For
// bf16 the magnitude is rounded to odd in f32 first.
func floatFromInt(to dtype.DType, class, x string) string {
	signed := class[0] == 's'
	switch to {
	case dtype.F32:
		return fmt.Sprintf("\tcvt.rn.f32.%s %%x32, %s;\n\tst.global.b32 [%%at_dst], %%x32;\n", class, x)
	case dtype.F64:
		return fmt.Sprintf("\tcvt.rn.f64.%s %%x64, %s;\n\tst.global.b64 [%%at_dst], %%x64;\n", class, x)
	case dtype.F16:
		text := fmt.Sprintf("\tmin.%s %s, %s, 65536;\n", class, x, x)
		if signed {
			text += fmt.Sprintf("\tmax.%s %s, %s, -65536;\n", class, x, x)
		}
		if x == "%x64" {
			text += "\tcvt.u32.u64 %x32, %x64;\n"
		}
		return text + fmt.Sprintf("\tcvt.rn.f32.%s32 %%x32, %%x32;\n\tcvt.rn.f16.f32 %%h0, %%x32;\n\tst.global.b16 [%%at_dst], %%h0;\n", class[:1])
	}
	text := ""
	if x == "%x32" {
		text = fmt.Sprintf("\tcvt.%s64.%s %%x64, %%x32;\n", class[:1], class)
	}
	text += "\tmov.b32 %a3, 0;\n"
	if signed {
		text += `	setp.lt.s64 %p0, %x64, 0;
	selp.b32 %a3, 0x80000000, 0, %p0;
	abs.s64 %x64, %x64;
`
	}
	return text + `	cvt.rz.f32.u64 %x32, %x64;
	cvt.rzi.u64.f32 %c0, %x32;
	setp.ne.u64 %p0, %c0, %x64;
	or.b32 %a4, %x32, 1;
	selp.b32 %x32, %a4, %x32, %p0;
	or.b32 %x32, %x32, %a3;
` + singleToBrain + "\tst.global.b16 [%at_dst], %x32;\n"
}
