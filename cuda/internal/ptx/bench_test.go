package ptx_test

import (
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

const loopText = `.version 7.0
.target sm_70
.address_size 64
.visible .entry loop(.param .u64 out, .param .u32 n)
{
	.reg .u32 %r<6>;
	.reg .u64 %rd<3>;
	.reg .f32 %f<3>;
	.reg .pred %p;
	ld.param.u64 %rd0, [out];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, 0;
	mov.u32 %r2, 1;
	mov.f32 %f0, 0f3F800000;
	mov.f32 %f1, 0f3F000000;
LOOP:
	mad.lo.u32 %r2, %r2, 1664525, 1013904223;
	xor.b32 %r3, %r2, %r1;
	fma.rn.f32 %f0, %f0, %f1, %f1;
	add.f32 %f2, %f0, %f1;
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p, %r1, %r0;
	@%p bra LOOP;
	st.global.u32 [%rd0], %r2;
	ret;
}
`

func BenchmarkInstructions(b *testing.B) {
	k := kernel(b, loopText, "loop")
	h := newHeap(64)
	steps := uint64(0)
	for b.Loop() {
		r, err := k.Run(ptx.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: [][]byte{arg(h.base, 8), arg(100000, 4)}, Memory: h})
		if err != nil {
			b.Fatal(err)
		}
		steps += r.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds()/1e6, "Minstr/s")
}
