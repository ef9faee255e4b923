package ptx_test

import (
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

// neighbour has each thread read what the next one wrote.
func neighbour(name, between string) string {
	return text(name, "", `
	.shared .u32 words[64];
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, words;
	mad.lo.u32 %r2, %r0, 4, %r1;
	st.shared.u32 [%r2], %r0;
	`+between+`
	xor.b32 %r3, %r0, 1;
	mad.lo.u32 %r2, %r3, 4, %r1;
	ld.shared.u32 %r4, [%r2];
	mad.wide.u32 %out, %r0, 4, %out;
	st.global.u32 [%out], %r4;`)
}

func findings(t *testing.T, s string, n int, blocks, threads uint32, seed uint64) map[ptx.Kind]int {
	t.Helper()
	h := newHeap(n)
	r, err := kernel(t, s, "k").Run(launch(h, blocks, threads, seed, arg(h.base, 8)))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[ptx.Kind]int{}
	for _, f := range r.Findings {
		kinds[f.Kind]++
	}
	if err := r.Err(); len(kinds) > 0 && err == nil {
		t.Error("got findings and no error")
	}
	return kinds
}

func TestMissingBarrier(t *testing.T) {
	missing, present := neighbour("missing barrier", ""), neighbour("barrier", "bar.sync 0;")
	partial := neighbour("barrier of the warp", "bar.warp.sync 0xffffffff;")
	for _, seed := range seeds {
		if got := findings(t, missing, 256, 1, 64, seed); got[ptx.RaceInBlock] == 0 {
			t.Errorf("seed %d: got %v, want a race in the block", seed, got)
		}
		for _, s := range []string{present, partial} {
			if got := findings(t, s, 256, 1, 64, seed); len(got) > 0 {
				t.Errorf("seed %d: got %v, want no findings", seed, got)
			}
		}
	}
	results := map[uint32]bool{} // a missing barrier shows in the results too
	for _, seed := range seeds {
		h := newHeap(256)
		if _, err := kernel(t, missing, "k").Run(launch(h, 1, 64, seed, arg(h.base, 8))); err != nil {
			t.Fatal(err)
		}
		for i := range 64 {
			results[h.u32(i)^uint32(i)] = true
		}
	}
	if len(results) < 2 {
		t.Error("every seed gave the result of a barrier, want some that do not")
	}
}

func TestRacingStores(t *testing.T) {
	blocks := text("racing blocks", "", `
	mov.u32 %r0, %ctaid.x;
	mov.u32 %r1, %tid.x;
	mad.lo.u32 %r1, %r0, 31, %r1;
	mad.wide.u32 %out, %r1, 4, %out;
	st.global.u32 [%out], %r1;`)
	bytes := text("stores of bytes", "", `
	mov.u32 %r0, %tid.x;
	cvt.u64.u32 %rd0, %r0;
	add.u64 %out, %out, %rd0;
	st.global.u8 [%out], %r0;
	ld.global.u8 %r1, [%out];`)
	mixed := text("atomic and plain", "", `
	mov.u32 %r0, %tid.x;
	setp.eq.u32 %p0, %r0, 0;
	@%p0 st.global.u32 [%out], 1;
	@!%p0 atom.global.add.u32 %r1, [%out], 1;`)
	after := text("write after read", "", `
	mov.u32 %r0, %tid.x;
	setp.ne.u32 %p0, %r0, 0;
	@%p0 bra READ;
	st.global.u32 [%out], 1;
READ:
	bar.sync 0;
	ld.global.u32 %r1, [%out];
	setp.eq.u32 %p0, %r0, 5;
	@%p0 st.global.u32 [%out], 2;`)
	for _, seed := range seeds {
		if got := findings(t, blocks, 256, 2, 32, seed); got[ptx.RaceOfBlocks] == 0 {
			t.Errorf("seed %d: got %v, want a race of blocks", seed, got)
		}
		if got := findings(t, bytes, 256, 1, 64, seed); len(got) > 0 {
			t.Errorf("seed %d: got %v, want no findings for neighbouring bytes", seed, got)
		}
		for _, s := range []string{mixed, after} {
			if got := findings(t, s, 256, 1, 32, seed); got[ptx.RaceInBlock] == 0 {
				t.Errorf("seed %d: got %v, want a race in the block", seed, got)
			}
		}
	}
}

func TestUnwrittenReads(t *testing.T) {
	global := text("unwritten global", "", "ld.global.u32 %r0, [%out+4];")
	shared := text("unwritten shared", "", "\t.shared .u32 word;\n\tld.shared.u32 %r0, [word];")
	updated := text("unwritten update", "", "red.global.add.u32 [%out], 1;")
	for _, s := range []string{global, shared, updated} {
		if got := findings(t, s, 16, 1, 1, 0); got[ptx.UnwrittenRead] != 1 {
			t.Errorf("got %v, want an unwritten read", got)
		}
	}
}

// TestFaults has launches that end, each with its reason.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"misaligned load":    {"ld.global.u32 %r0, [%out+2];", "want a multiple of 4"},
		"misaligned vector":  {"st.global.v4.f32 [%out+8], {0f00000000, 0f00000000, 0f00000000, 0f00000000};", "want a multiple of 16"},
		"misaligned param":   {"mov.u64 %rd0, out;\n\tadd.u64 %rd0, %rd0, 1;\n\tld.param.u32 %r0, [%rd0];", "want a multiple of 4"},
		"out of params":      {"mov.u64 %rd0, out;\n\tld.param.u32 %r0, [%rd0+8];", "of the parameters"},
		"out of bounds":      {"st.global.u8 [%out+64], 0;", "got 1 bytes at"},
		"out of shared":      {".shared .u32 w;\n\tmov.u32 %r0, w;\n\tst.shared.u32 [%r0+-4], 0;", "of shared memory"},
		"division by zero":   {"mov.u32 %r0, %tid.x;\n\tdiv.u32 %r1, 5, %r0;", "the divisor 0"},
		"endless loop":       {"L:\n\tbra L;", "a loop does not end"},
		"endless wait":       {"L:\n\tld.volatile.global.u32 %r0, [%out];\n\tsetp.eq.u32 %p0, %r0, 0;\n\t@%p0 bra L;", "a loop does not end"},
		"trap":               {"trap;", "got a trap"},
		"divergence":         {"mov.u32 %r0, %tid.x;\n\tsetp.eq.u32 %p0, %r0, 3;\n\t@%p0 bra E;\n\tbar.sync 0;\nE:", "barrier"},
		"two barriers":       {"mov.u32 %r0, %tid.x;\n\tsetp.eq.u32 %p0, %r0, 3;\n\t@%p0 bra E;\n\tbar.sync 0;\n\tret;\nE:\n\tbar.sync 0;", "two barriers in one warp"},
		"different barriers": {"mov.u32 %r0, %tid.x;\n\tshr.u32 %r0, %r0, 5;\n\tbarrier.sync %r0;", "a wait without an end"},
		"barrier of a part":  {"bar.sync 1, 32;", "for all 64 of the block"},
		"no such barrier":    {"mov.u32 %r0, 16;\n\tbarrier.sync %r0;", "one of 0 to 15"},
		"lane missing":       {"mov.u32 %r0, %tid.x;\n\tsetp.eq.u32 %p0, %r0, 3;\n\t@%p0 bar.warp.sync 9;\n\tshfl.sync.up.b32 %r1, %r0, 1, 0, 0xffffffff;", "a wait without an end"},
		"mask without self":  {"mov.u32 %r0, %tid.x;\n\tshfl.sync.up.b32 %r1, %r0, 1, 0, 1;", "one with lane"},
		"lane of no part":    {"mov.u32 %r0, %tid.x;\n\tmov.u32 %r2, %lanemask_eq;\n\tshfl.sync.idx.b32 %r1, %r0, 3, 0x1f, %r2;", "does not take part"},
	} {
		k := kernel(t, text("fault: "+name, "", "\t"+c.body), "k")
		for _, seed := range seeds {
			h := newHeap(64)
			h.MarkWritten(h.base, 64)
			l := launch(h, 1, 64, seed, arg(h.base, 8))
			l.Steps = 100_000
			l.Races = name != "endless wait"
			_, err := k.Run(l)
			t.Run(name, func(t *testing.T) { wantFault(t, err, 1, c.want) })
		}
	}
}

func TestLaunchesRefused(t *testing.T) {
	k := kernel(t, text("refused", ".param .align 4 .b8 two[6]", ""), "k")
	if p := k.Params(); len(p) != 2 || p[1] != (ptx.Param{Name: "two", Size: 6, Align: 4, Offset: 8}) {
		t.Errorf("got the parameters %v", p)
	}
	h := newHeap(8)
	good := launch(h, 1, 1, 0, make([]byte, 8), make([]byte, 6))
	if _, err := k.Run(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(l *ptx.Launch){
		"1 arguments, want 2":      func(l *ptx.Launch) { l.Args = l.Args[:1] },
		"4 bytes for parameter 1":  func(l *ptx.Launch) { l.Args = [][]byte{l.Args[0], make([]byte, 4)} },
		"[0 1 1] blocks":           func(l *ptx.Launch) { l.Grid[0] = 0 },
		"[1 65536 1] blocks":       func(l *ptx.Launch) { l.Grid[1] = 65536 },
		"[1 1 0] threads":          func(l *ptx.Launch) { l.Block[2] = 0 },
		"[1025 1 1] threads":       func(l *ptx.Launch) { l.Block[0] = 1025 },
		"[64 32 1] threads":        func(l *ptx.Launch) { l.Block = [3]uint32{64, 32, 1} },
		"[1 1 65] threads":         func(l *ptx.Launch) { l.Block[2] = 65 },
		"dynamic shared memory":    func(l *ptx.Launch) { l.Shared = 1 << 30 },
		"[65536 65535 2] blocks, ": func(l *ptx.Launch) { l.Grid = [3]uint32{65536, 65535, 2} },
	} {
		l := good
		change(&l)
		_, err := k.Run(l)
		wantFault(t, err, 0, want)
	}
	l := good
	l.Memory = nil
	if _, err := k.Run(l); err != nil {
		t.Errorf("without memory: got %v", err)
	}
}

// TestOrders has more blocks than are resident at a time, and checks that each
// runs exactly once.
func TestOrders(t *testing.T) {
	s := text("orders", "", `
	mov.u32 %r0, %ctaid.x;
	mad.wide.u32 %out, %r0, 4, %out;
	red.global.add.u32 [%out], 1;`)
	for blocks := uint32(1); blocks < 20; blocks++ {
		for seed := range uint64(8) {
			h := newHeap(4 * int(blocks))
			h.MarkWritten(h.base, len(h.data))
			r, err := kernel(t, s, "k").Run(launch(h, blocks, 3, seed, arg(h.base, 8)))
			if err != nil || r.Err() != nil {
				t.Fatal(err, r.Err())
			}
			for i := range int(blocks) {
				if h.u32(i) != 3 {
					t.Fatalf("%d blocks, seed %d: block %d ran %d times", blocks, seed, i, h.u32(i))
				}
			}
		}
	}
}
