package ptx_test

import (
	"encoding/binary"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

// TestAccesses loads and stores every type, in vectors, with the modifiers of
// order and cache.
func TestAccesses(t *testing.T) {
	s := text("accesses", ".param .align 16 .b8 in[32]", `
	ld.param.s8 %r0, [in];
	ld.param.u8 %r1, [in+1];
	ld.param.s16 %r2, [in+2];
	st.global.cs.u32 [%out], %r0;
	st.global.u32 [%out+4], %r1;
	st.release.gpu.global.u32 [%out+8], %r2;
	mov.u64 %rd0, in;
	add.u64 %rd0, %rd0, 8;
	ld.param.v2.u32 {%r3, %r4}, [%rd0];
	st.global.v2.u32 [%out+16], {%r4, %r3};
	ld.param.v2.u64 {%rd1, %rd2}, [in+16];
	st.global.wt.v2.b64 [%out+32], {%rd2, %rd1};
	ld.global.cg.v4.u32 {%r0, %r1, %r2, %r3}, [%out+32];
	ld.acquire.sys.global.u16 %h0, [%out+34];
	ld.global.L1::no_allocate.L2::128B.v2.u16 {_, %h1}, [%out+32];
	st.weak.global.v4.b32 [%out+48], {%r3, %r2, %r1, %r0};
	st.volatile.global.u8 [%out+64], %r0;
	st.relaxed.gpu.global.b16 [%out+66], %h0;
	st.global.u16 [%out+68], %h1;
	ld.global.nc.f32 %f0, [%out+32];
	ld.relaxed.cta.global.f32 %f1, [%out+36];
	st.global.f32 [%out+72], %f0;
	st.global.v2.f64 [%out+80], {0d3FF0000000000000, 0d4000000000000000};`)
	var in [32]byte
	for i := range in {
		in[i] = byte(0x80 + i)
	}
	for _, seed := range seeds {
		h := run(t, s, 96, 1, 1, seed, in[:])
		if h.u32(0) != 0xffff_ff80 || h.u32(1) != 0x81 || h.u32(2) != 0xffff_8382 {
			t.Errorf("narrow loads: got %x", h.data[:12])
		}
		at := func(i int) uint64 { return binary.LittleEndian.Uint64(in[i:]) }
		if h.u64(2) != at(8)<<32|at(8)>>32 || h.u64(4) != at(24) || h.u64(5) != at(16) || h.u64(6) != at(16)<<32|at(16)>>32 {
			t.Errorf("vectors: got %x", h.data[16:64])
		}
		if h.data[64] != in[24] || h.data[66] != in[26] || h.data[68] != in[26] || h.u32(18) != uint32(at(24)) || h.u64(10) != 0x3ff0_0000_0000_0000 {
			t.Errorf("narrow stores: got %x", h.data[64:])
		}
	}
}

// TestSpecialRegisters stores what each thread sees of itself.
func TestSpecialRegisters(t *testing.T) {
	s := text("special", "", `
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %tid.y;
	mov.u32 %r2, %tid.z;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %ntid.y;
	mad.lo.u32 %r2, %r2, %r4, %r1;
	mad.lo.u32 %r2, %r2, %r3, %r0;
	mov.u32 %r4, %ctaid.x;
	mov.u32 %r5, %ctaid.y;
	mov.u32 %r6, %nctaid.x;
	mad.lo.u32 %r4, %r5, %r6, %r4;
	mad.lo.u32 %r5, %r4, 48, %r2;
	mad.wide.u32 %out, %r5, 16, %out;
	mov.u32 %r6, %laneid;
	mov.u32 %r7, %lanemask_lt;
	popc.b32 %r8, %r7;
	mov.b32 %r9, {%h0, %h1};
	mov.b32 {%h0, %h1}, %r6;
	mov.b32 %r6, {%h1, %h0};
	cvt.u64.u32 %rd0, %tid.z;
	cvt.u32.u64 %r9, %rd0;
	st.global.v4.u32 [%out], {%r5, %r6, %r8, %r9};`)
	k := kernel(t, s, "k")
	for _, seed := range seeds {
		h := newHeap(4 * 48 * 16)
		l := launch(h, 2, 4, seed, arg(h.base, 8))
		l.Grid[1], l.Block[1], l.Block[2] = 2, 4, 3
		if _, err := k.Run(l); err != nil {
			t.Fatal(err)
		}
		for i := range 4 * 48 {
			n := i % 48
			if got, want := [4]uint32{h.u32(4 * i), h.u32(4*i + 1), h.u32(4*i + 2), h.u32(4*i + 3)}, ([4]uint32{uint32(i), uint32(n%32) << 16, uint32(n % 32), uint32(n / 16)}); got != want {
				t.Fatalf("thread %d: got %v, want %v", i, got, want)
			}
		}
	}
}

// TestShared turns the words of a block around through static and dynamic
// shared memory, by addresses of the state space and generic ones.
func TestShared(t *testing.T) {
	s := header + `.extern .shared .align 8 .b8 more[];
.visible .entry k(.param .u64 out)
{
	.reg .u32 %r<8>;
	.reg .u64 %rd<8>;
	.shared .align 4 .b8 odd[5];
	.shared .u32 words[64];
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, words;
	shl.b32 %r2, %r0, 2;
	add.u32 %r1, %r1, %r2;
	st.shared.u32 [%r1], %r0;
	mov.u64 %rd1, more;
	cvta.shared.u64 %rd1, %rd1;
	mad.wide.u32 %rd1, %r0, 4, %rd1;
	st.u32 [%rd1], %r0;
	bar.sync 0;
	sub.u32 %r3, 63, %r0;
	shl.b32 %r4, %r3, 2;
	mov.u32 %r5, words;
	add.u32 %r5, %r5, %r4;
	ld.shared.u32 %r6, [%r5];
	mov.u64 %rd2, more;
	mad.wide.u32 %rd2, %r3, 4, %rd2;
	ld.shared.u32 %r7, [%rd2];
	add.u32 %r6, %r6, %r7;
	ld.param.u64 %rd0, [out];
	cvta.to.global.u64 %rd0, %rd0;
	mad.wide.u32 %rd0, %r0, 4, %rd0;
	st.u32 [%rd0], %r6;
	ret;
}
`
	texts["shared"] = s
	k := kernel(t, s, "k")
	if k.SharedBytes() != 8+256 {
		t.Errorf("got %d bytes of shared memory, want 264", k.SharedBytes())
	}
	for _, seed := range seeds {
		h := newHeap(256)
		l := launch(h, 1, 64, seed, arg(h.base, 8))
		l.Shared = 256
		r, err := k.Run(l)
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range 64 {
			if h.u32(i) != uint32(2*(63-i)) {
				t.Fatalf("word %d: got %d", i, h.u32(i))
			}
		}
		l.Shared = 252
		_, err = k.Run(l)
		wantFault(t, err, 1, "of shared memory, want some of its")
	}
}

// TestAtomics has every thread of several blocks update a few words.
func TestAtomics(t *testing.T) {
	s := text("atomics", "", `
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %ctaid.x;
	mad.lo.u32 %r0, %r1, 64, %r0;
	atom.global.add.u32 %r2, [%out], 1;
	red.global.max.u32 [%out+4], %r0;
	red.relaxed.gpu.global.min.s32 [%out+8], -5;
	atom.global.xor.b32 %r3, [%out+12], %r0;
	red.global.or.b32 [%out+16], %r0;
	atom.global.inc.u32 %r4, [%out+20], 9;
	cvt.rn.f32.u32 %f0, %r0;
	red.global.add.f32 [%out+24], %f0;
	red.global.and.b32 [%out+28], 0xfffffff0;
	cvt.u64.u32 %rd0, %r0;
	atom.global.add.u64 %rd1, [%out+32], %rd0;
	atom.gpu.global.exch.b64 %rd2, [%out+40], %rd0;
AGAIN:
	atom.acq_rel.gpu.global.add.u32 %r5, [%out+48], 0;
	add.u32 %r6, %r5, 3;
	atom.global.cas.b32 %r7, [%out+48], %r5, %r6;
	setp.ne.u32 %p0, %r7, %r5;
	@%p0 bra AGAIN;
	cvt.rn.f64.u32 %d0, %r0;
	red.global.add.f64 [%out+56], %d0;
	atom.global.dec.u32 %r4, [%out+64], 9;
	membar.gl;
	fence.acq_rel.gpu;`)
	k := kernel(t, s, "k")
	for _, seed := range seeds {
		h := newHeap(72)
		h.MarkWritten(h.base, 72)
		r, err := k.Run(launch(h, 3, 64, seed, arg(h.base, 8)))
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		const n, sum = 192, 192 * 191 / 2
		got := []uint64{uint64(h.u32(0)), uint64(h.u32(1)), uint64(h.u32(2)), uint64(h.u32(3)), uint64(h.u32(4)), uint64(h.u32(5)), uint64(h.u32(6)), uint64(h.u32(7)), h.u64(4), uint64(h.u32(12)), h.u64(7), uint64(h.u32(16))}
		want := []uint64{n, n - 1, 0xffff_fffb, 0, 255, n % 10, 0x468f_4000, 0, sum, 3 * n, 0x40d1_e800_0000_0000, 8}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("seed %d, word %d: got %#x, want %#x", seed, i, got[i], want[i])
			}
		}
	}
}

// TestWarp exchanges values between lanes.
func TestWarp(t *testing.T) {
	s := text("warp", "", `
	mov.u32 %r0, %tid.x;
	shl.b32 %r1, %r0, 2;
	cvt.u64.u32 %rd0, %r1;
	mul.lo.u64 %rd0, %rd0, 8;
	add.u64 %out, %out, %rd0;
	shfl.sync.up.b32 %r1|%p0, %r0, 1, 0, 0xffffffff;
	selp.u32 %r2, 100, 200, %p0;
	add.u32 %r1, %r1, %r2;
	st.global.u32 [%out], %r1;
	shfl.sync.down.b32 %r1, %r0, 2, 0x1f, 0xffffffff;
	st.global.u32 [%out+4], %r1;
	shfl.sync.bfly.b32 %r1, %r0, 5, 0x1f, -1;
	st.global.u32 [%out+8], %r1;
	shfl.sync.idx.b32 %r1, %r0, 3, 0x181f, 0xffffffff;
	st.global.u32 [%out+12], %r1;
	and.b32 %r3, %r0, 1;
	setp.eq.u32 %p1, %r3, 1;
	vote.sync.ballot.b32 %r4, %p1, 0xffffffff;
	vote.sync.any.pred %p2, !%p1, 0xffffffff;
	vote.sync.all.pred %p3, %p1, 0xffffffff;
	selp.u32 %r5, 1, 0, %p2;
	@%p3 add.u32 %r5, %r5, 2;
	vote.sync.uni.pred %p3, %p2, 0xffffffff;
	@%p3 add.u32 %r5, %r5, 4;
	st.global.v4.u32 [%out+16], {%r4, %r5, 0, 0};
	activemask.b32 %r6;
	bar.warp.sync 0xffffffff;`)
	for _, seed := range seeds {
		const n = 64
		h := run(t, s, 32*n, 1, n, seed)
		for i := range n {
			lane, base := i%32, i&^31
			up := uint32(base+lane-1) + 100
			if lane == 0 {
				up = uint32(base) + 200
			}
			downwards := base + lane + 2
			if lane >= 30 {
				downwards = base + lane
			}
			want := [6]uint32{up, uint32(downwards), uint32(i ^ 5), uint32(base + lane&^7 + 3), 0xaaaa_aaaa, 5}
			for j, w := range want {
				if got := h.u32(8*i + j); got != w {
					t.Fatalf("seed %d, thread %d, word %d: got %d, want %d", seed, i, j, got, w)
				}
			}
		}
	}
}

// TestScopes has names that hide others, a comment over lines, and more than
// one kernel.
func TestScopes(t *testing.T) {
	s := header + `/* two
lines */ .visible .entry one(.param .u64 out) .maxntid 64, 1, 1 { // a limit
	.reg .u64 %out; .reg .u32 x;
	ld.param.u64 %out, [out]; mov.u32 x, 1;
	{ .reg .u64 x; mov.u64 x, 0x12345678; st.global.u64 [%out], x; }
	st.global.u32 [%out+8], x;
	bra.uni END;
	st.global.u32 [%out+8], 017;
END:
	ret.uni;
}
.entry two() .reqntid 32 { exit; }
`
	texts["scopes"] = s
	m, err := ptx.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := m.Kernel("one")
	h := newHeap(16)
	if _, err := one.Run(launch(h, 1, 1, 0, arg(h.base, 8))); err != nil || h.u64(0) != 0x12345678 || h.u32(2) != 1 {
		t.Errorf("got %v, %x", err, h.data)
	}
	if _, err := one.Run(launch(h, 1, 65, 0, arg(h.base, 8))); err == nil {
		t.Error("got a block of 65 threads, want a fault")
	}
	two, _ := m.Kernel("two")
	_, err = two.Run(ptx.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}})
	wantFault(t, err, 0, "as the kernel requires")
	if _, err := two.Run(ptx.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}}); err != nil {
		t.Error(err)
	}
	if _, err := m.Kernel("three"); err == nil || len(m.Kernels()) != 2 || one.Name() != "one" {
		t.Errorf("got %v, %q", err, m.Kernels())
	}
}
