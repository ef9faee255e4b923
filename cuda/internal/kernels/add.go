package kernels

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
)

// addTypes are those that there are additions of.
var addTypes = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I32, dtype.I64}

func additions() []*Kernel {
	operands := []Param{address("dst", false, true), address("a", true, false), address("b", true, false)}
	var all []*Kernel
	for _, dt := range addTypes {
		_, first := loadAs(dt, "%at_a")
		class, second := loadAs(dt, "%at_b")
		x, y, suffix := "%x32", "%y32", class
		if class[1:] == "64" {
			x, y = "%x64", "%y64"
		}
		if class[0] == 'f' {
			suffix = "rn." + class // an addition without a rounding may be fused with what follows
		}
		body := first + fmt.Sprintf("\tmov.b%s %s, %s;\n", class[1:], y, x) + second + fmt.Sprintf("\tadd.%s %s, %s, %s;\n", suffix, x, y, x)
		if class[0] == 'f' && dt.Size() == 2 {
			body += floatFromFloat(dt, class)
		} else {
			body += fmt.Sprintf("\tst.global.b%d [%%at_dst], %s;\n", dt.Bits(), x)
		}
		params, text := strided(operands, "", body)
		all = append(all, &Kernel{Name: "add_" + dt.String(), Module: "add", Family: FamilyAdd, From: dt, To: dt, Size: dt.Size(), Per: "n", Params: params, body: text})
	}
	return all
}

func sums() []*Kernel {
	var all []*Kernel
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64} {
		all = append(all, sum(dt))
	}
	return all
}

// sum returns the kernel that sums rows. A block takes row i: thread t adds the
// elements t, t+256, ... to 0, one after the other, and then the threads' sums
// are added in a tree: that of thread t+128 to that of thread t, then t+64, and
// so on. The last row may be shorter: no row has elements from total on.
func sum(dt dtype.DType) *Kernel {
	size, class, x, y, zero := dt.Size(), "f32", "%x32", "%y32", "0f00000000"
	if dt == dtype.F64 {
		class, x, y, zero = "f64", "%x64", "%y64", "0d0000000000000000"
	}
	text := registers + fmt.Sprintf(`	.reg .b64 %%dst, %%src, %%at_dst, %%at_src, %%length, %%cols, %%pitch, %%j;
	.reg .b32 %%mine, %%other;
	.shared .align 8 .b8 partial[%d];
`, Threads*size) + `	mov.u32 %thread, %tid.x;
	mov.u32 %q32, %ctaid.x;
	cvt.u64.u32 %i, %q32;
	mov.u32 %s32, %nctaid.x;
	cvt.u64.u32 %step, %s32;
` + fmt.Sprintf("\tmov.u32 %%mine, partial;\n\tmad.lo.u32 %%mine, %%thread, %d, %%mine;\n", size) + `	ld.param.u64 %dst, [dst];
	ld.param.u64 %src, [src];
	ld.param.u64 %n, [n];
	ld.param.u64 %cols, [cols];
	ld.param.u64 %pitch, [pitch];
ROW:
	setp.ge.u64 %done, %i, %n;
	@%done bra END;
	mov.u64 %rest, %i;
	mov.u64 %at_dst, %dst;
	mov.u64 %at_src, %src;
` + locate([]string{"dst", "src"}) + `	ld.param.u64 %length, [total];
	mul.lo.u64 %c0, %i, %cols;
	sub.u64 %length, %length, %c0;
	min.u64 %length, %length, %cols;
	cvt.u64.u32 %j, %thread;
	mad.lo.u64 %at_src, %j, %pitch, %at_src;
	shl.b64 %c1, %pitch, 8;
` + fmt.Sprintf("\tmov.b%d %s, %s;\n", 8*size, x, zero) + `COLUMN:
	setp.ge.u64 %done, %j, %length;
	@%done bra TREE;
` + fmt.Sprintf("\tld.global.b%d %s, [%%at_src];\n\tadd.rn.%s %s, %s, %s;\n", 8*size, y, class, x, x, y) + `	add.u64 %at_src, %at_src, %c1;
	add.u64 %j, %j, 256;
	bra COLUMN;
TREE:
` + fmt.Sprintf("\tst.shared.b%d [%%mine], %s;\n", 8*size, x) + `	mov.u32 %a0, 128;
LEVEL:
	bar.sync 0;
	setp.ge.u32 %p0, %thread, %a0;
	@%p0 bra NEXT;
` + fmt.Sprintf("\tmad.lo.u32 %%other, %%a0, %d, %%mine;\n\tld.shared.b%d %s, [%%other];\n\tadd.rn.%s %s, %s, %s;\n\tst.shared.b%d [%%mine], %s;\n", size, 8*size, y, class, x, x, y, 8*size, x) + `NEXT:
	shr.u32 %a0, %a0, 1;
	setp.ne.u32 %more, %a0, 0;
	@%more bra LEVEL;
	setp.ne.u32 %p0, %thread, 0;
` + fmt.Sprintf("\t@!%%p0 st.global.b%d [%%at_dst], %s;\n", 8*size, x) + `	bar.sync 0;
	add.u64 %i, %i, %step;
	bra ROW;
END:
	ret;
`
	params := []Param{scalar("n"), layoutParam(2), address("dst", false, true), address("src", true, false), scalar("cols"), scalar("pitch"), scalar("total")}
	return &Kernel{Name: "sum_" + dt.String(), Module: "sum", Family: FamilySum, From: dt, To: dt, Size: size, Per: "n", Params: params, body: text}
}

// SumF32 sums x in the order of the kernel.
func SumF32(x []float32) float32 { return sumRow(x) }

// SumF64 sums x in the order of the kernel.
func SumF64(x []float64) float64 { return sumRow(x) }

func sumRow[F float32 | float64](x []F) F {
	var partial [Threads]F
	for t := range partial {
		for j := t; j < len(x); j += Threads {
			partial[t] += x[j]
		}
	}
	for half := Threads / 2; half > 0; half /= 2 {
		for t := range half {
			partial[t] += partial[t+half]
		}
	}
	return partial[0]
}
