package kernels

import (
	"fmt"
	"strings"
)

// registers are those that every kernel declares; the driver drops the ones
// that it does not use. They have bit types, which fit every instruction of
// their size.
const registers = `	.reg .pred %p<4>, %done, %more, %large, %nan;
	.reg .b16 %h<2>;
	.reg .b32 %x32, %y32, %a<8>, %thread, %rank, %q32, %r32, %s32;
	.reg .b64 %x64, %y64, %c<8>, %i, %n, %step, %rest, %size, %stride, %q, %r, %dim, %first;
`

// start gives a thread its number i in the grid and the number of threads.
const start = `	mov.u32 %thread, %tid.x;
	mov.u32 %q32, %ctaid.x;
	mov.u32 %r32, %ntid.x;
	mov.u32 %s32, %nctaid.x;
	mul.wide.u32 %i, %q32, %r32;
	cvt.u64.u32 %r, %thread;
	add.u64 %i, %i, %r;
	mul.wide.u32 %step, %r32, %s32;
`

// locate adds the offset of element %rest to the address of each operand,
// %at_NAME. The last dimension varies fastest; what is left for the first needs
// no division. A division of 64 bits takes several times as long as one of 32,
// so that it is avoided where both numbers are small.
func locate(operands []string) string {
	var b strings.Builder
	b.WriteString(`	ld.param.u32 %rank, [layout];
	mov.u64 %first, layout;
	mad.wide.u32 %dim, %rank, 8, %first;
	sub.u64 %dim, %dim, 8;
DIMENSION:
	setp.le.u64 %done, %dim, %first;
	@%done bra OUTERMOST;
	ld.param.u64 %size, [%dim+8];
	or.b64 %q, %rest, %size;
	shr.u64 %q, %q, 32;
	setp.ne.u64 %large, %q, 0;
	@%large bra LARGE;
	cvt.u32.u64 %r32, %rest;
	cvt.u32.u64 %s32, %size;
	div.u32 %q32, %r32, %s32;
	mul.lo.u32 %s32, %q32, %s32;
	sub.u32 %r32, %r32, %s32;
	cvt.u64.u32 %q, %q32;
	cvt.u64.u32 %r, %r32;
	bra ADVANCE;
LARGE:
	div.u64 %q, %rest, %size;
	mul.lo.u64 %r, %q, %size;
	sub.u64 %r, %rest, %r;
ADVANCE:
`)
	for j, o := range operands {
		fmt.Fprintf(&b, "\tld.param.u64 %%stride, [%%dim+%d];\n\tmad.lo.u64 %%at_%s, %%r, %%stride, %%at_%s;\n", 8+8*MaxRank*(1+j), o, o)
	}
	b.WriteString(`	mov.u64 %rest, %q;
	sub.u64 %dim, %dim, 8;
	bra DIMENSION;
OUTERMOST:
`)
	for j, o := range operands {
		fmt.Fprintf(&b, "\tld.param.u64 %%stride, [layout+%d];\n\tmad.lo.u64 %%at_%s, %%rest, %%stride, %%at_%s;\n", 8+8*MaxRank*(1+j), o, o)
	}
	return b.String()
}

// strided returns a kernel that does body for each of n elements, with the
// address of each operand in %at_NAME. once is done before the first.
func strided(operands []Param, once, body string) (params []Param, text string) {
	var names []string
	for _, o := range operands {
		names = append(names, o.Name)
	}
	var b strings.Builder
	b.WriteString(registers)
	fmt.Fprintf(&b, "\t.reg .b64 %%%s, %%at_%s;\n", strings.Join(names, ", %"), strings.Join(names, ", %at_"))
	b.WriteString(start)
	for _, o := range names {
		fmt.Fprintf(&b, "\tld.param.u64 %%%s, [%s];\n", o, o)
	}
	b.WriteString(once)
	b.WriteString(`	ld.param.u64 %n, [n];
ELEMENT:
	setp.ge.u64 %done, %i, %n;
	@%done bra END;
	mov.u64 %rest, %i;
`)
	for _, o := range names {
		fmt.Fprintf(&b, "\tmov.u64 %%at_%s, %%%s;\n", o, o)
	}
	b.WriteString(locate(names))
	b.WriteString(body)
	b.WriteString("\tadd.u64 %i, %i, %step;\n\tbra ELEMENT;\nEND:\n\tret;\n")
	return append([]Param{scalar("n"), layoutParam(len(operands))}, operands...), b.String()
}

// vector returns a kernel that does unit for each 16 bytes of n and rest for
// each byte after them, with the offset of either in %i and the address of each
// operand in %NAME.
func vector(operands []Param, once, unit, rest string) (params []Param, text string) {
	var b strings.Builder
	b.WriteString(registers)
	for _, o := range operands {
		fmt.Fprintf(&b, "\t.reg .b64 %%%s, %%at_%s;\n", o.Name, o.Name)
	}
	b.WriteString(start)
	b.WriteString("\tld.param.u64 %n, [n];\n")
	var at strings.Builder
	for _, o := range operands {
		fmt.Fprintf(&b, "\tld.param.u64 %%%s, [%s];\n", o.Name, o.Name)
		fmt.Fprintf(&at, "\tadd.u64 %%at_%s, %%%s, %%c0;\n", o.Name, o.Name)
	}
	b.WriteString(once)
	b.WriteString(`	and.b64 %q, %n, -16;
	add.u64 %rest, %q, %i;
UNIT:
	shl.b64 %c0, %i, 4;
	setp.ge.u64 %done, %c0, %q;
	@%done bra REST;
` + at.String() + unit + `	add.u64 %i, %i, %step;
	bra UNIT;
REST:
	setp.ge.u64 %done, %rest, %n;
	@%done bra END;
	mov.u64 %c0, %rest;
` + at.String() + rest + "END:\n\tret;\n")
	return append([]Param{scalar("n")}, operands...), b.String()
}

var elementSizes = []int{1, 2, 4, 8, 16}

func fills() []*Kernel {
	dst := []Param{address("dst", false, true)}
	var all []*Kernel
	for _, size := range elementSizes[:4] {
		x := map[bool]string{true: "%x64", false: "%x32"}[size == 8]
		params, text := strided(dst, fmt.Sprintf("\tld.param.b64 %%x64, [pattern];\n\tcvt.u32.u64 %%x32, %%x64;\n"), fmt.Sprintf("\tst.global.b%d [%%at_dst], %s;\n", 8*size, x))
		all = append(all, &Kernel{Name: fmt.Sprint("fill_", size), Module: "fill", Family: FamilyFill, Size: size, Per: "n", Params: append(params, scalar("pattern")), body: text})
	}
	params, text := vector(dst, "\tld.param.b64 %x64, [pattern];\n", "\tst.global.v2.b64 [%at_dst], {%x64, %x64};\n", `	cvt.u32.u64 %x32, %c0;
	and.b32 %x32, %x32, 7;
	shl.b32 %x32, %x32, 3;
	shr.u64 %x64, %x64, %x32;
	st.global.b8 [%at_dst], %x64;
`)
	return append(all, &Kernel{Name: "fill_contiguous", Module: "fill", Family: FamilyFill, Size: 16, Per: "n", Vector: true, Params: append(params, scalar("pattern")), body: text})
}

func copies() []*Kernel {
	operands := []Param{address("dst", false, true), address("src", true, false)}
	const wide = "\tld.global.v2.b64 {%x64, %y64}, [%at_src];\n\tst.global.v2.b64 [%at_dst], {%x64, %y64};\n"
	var all []*Kernel
	for _, size := range elementSizes {
		body := wide
		if size < 16 {
			x := map[bool]string{true: "%x64", false: "%x32"}[size == 8]
			body = fmt.Sprintf("\tld.global.b%d %s, [%%at_src];\n\tst.global.b%d [%%at_dst], %s;\n", 8*size, x, 8*size, x)
		}
		params, text := strided(operands, "", body)
		all = append(all, &Kernel{Name: fmt.Sprint("copy_", size), Module: "copy", Family: FamilyCopy, Size: size, Per: "n", Params: params, body: text})
	}
	params, text := vector(operands, "", wide, "\tld.global.b8 %x32, [%at_src];\n\tst.global.b8 [%at_dst], %x32;\n")
	return append(all, &Kernel{Name: "copy_contiguous", Module: "copy", Family: FamilyCopy, Size: 16, Per: "n", Vector: true, Params: params, body: text})
}
