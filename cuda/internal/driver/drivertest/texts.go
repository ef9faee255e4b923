package drivertest

// PTX has the kernels of tests, on words of 32 bits, one for each thread: fill
// sets a to v, bump adds v to a, next sets a to b + 1, and sum sets c to a + b.
const PTX = `.version 6.4
.target sm_52
.address_size 64

.visible .entry fill(.param .u64 a, .param .u32 v, .param .u32 n)
{
	.reg .pred %p;
	.reg .u32 %i, %n, %t, %x;
	.reg .u64 %o, %a;
	ld.param.u32 %n, [n];
	mov.u32 %t, %ctaid.x;
	mov.u32 %i, %ntid.x;
	mul.lo.u32 %t, %t, %i;
	mov.u32 %i, %tid.x;
	add.u32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p bra DONE;
	mul.wide.u32 %o, %i, 4;
	ld.param.u64 %a, [a];
	cvta.to.global.u64 %a, %a;
	add.u64 %a, %a, %o;
	ld.param.u32 %x, [v];
	st.global.u32 [%a], %x;
DONE:
	ret;
}

.visible .entry bump(.param .u64 a, .param .u32 v, .param .u32 n)
{
	.reg .pred %p;
	.reg .u32 %i, %n, %t, %x, %v;
	.reg .u64 %o, %a;
	ld.param.u32 %n, [n];
	mov.u32 %t, %ctaid.x;
	mov.u32 %i, %ntid.x;
	mul.lo.u32 %t, %t, %i;
	mov.u32 %i, %tid.x;
	add.u32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p bra DONE;
	mul.wide.u32 %o, %i, 4;
	ld.param.u64 %a, [a];
	cvta.to.global.u64 %a, %a;
	add.u64 %a, %a, %o;
	ld.param.u32 %v, [v];
	ld.global.u32 %x, [%a];
	add.u32 %x, %x, %v;
	st.global.u32 [%a], %x;
DONE:
	ret;
}

.visible .entry next(.param .u64 a, .param .u64 b, .param .u32 n)
{
	.reg .pred %p;
	.reg .u32 %i, %n, %t, %x;
	.reg .u64 %o, %a, %b;
	ld.param.u32 %n, [n];
	mov.u32 %t, %ctaid.x;
	mov.u32 %i, %ntid.x;
	mul.lo.u32 %t, %t, %i;
	mov.u32 %i, %tid.x;
	add.u32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p bra DONE;
	mul.wide.u32 %o, %i, 4;
	ld.param.u64 %a, [a];
	cvta.to.global.u64 %a, %a;
	add.u64 %a, %a, %o;
	ld.param.u64 %b, [b];
	cvta.to.global.u64 %b, %b;
	add.u64 %b, %b, %o;
	ld.global.u32 %x, [%b];
	add.u32 %x, %x, 1;
	st.global.u32 [%a], %x;
DONE:
	ret;
}

.visible .entry sum(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
	.reg .pred %p;
	.reg .u32 %i, %n, %t, %x, %y;
	.reg .u64 %o, %a, %b, %c;
	ld.param.u32 %n, [n];
	mov.u32 %t, %ctaid.x;
	mov.u32 %i, %ntid.x;
	mul.lo.u32 %t, %t, %i;
	mov.u32 %i, %tid.x;
	add.u32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p bra DONE;
	mul.wide.u32 %o, %i, 4;
	ld.param.u64 %a, [a];
	cvta.to.global.u64 %a, %a;
	add.u64 %a, %a, %o;
	ld.param.u64 %b, [b];
	cvta.to.global.u64 %b, %b;
	add.u64 %b, %b, %o;
	ld.param.u64 %c, [c];
	cvta.to.global.u64 %c, %c;
	add.u64 %c, %c, %o;
	ld.global.u32 %x, [%a];
	ld.global.u32 %y, [%b];
	add.u32 %x, %x, %y;
	st.global.u32 [%c], %x;
DONE:
	ret;
}
`
