package ptx_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

// TestRefused has texts that are no modules of the subset, and a part of the
// error of each.
func TestRefused(t *testing.T) {
	body := func(s string) string {
		return header + ".entry k(.param .u64 out)\n{\n.reg .u32 %r<4>; .reg .u64 %rd; .reg .f32 %f; .reg .pred %p; .shared .u32 w; .reg .b16 %h;\n" + s + "\nret;\n}\n"
	}
	for i, c := range []struct{ text, want string }{
		{"", `line 1: got the end of the text, want ".version"`},
		{".version 7.0\n.target sm_70\n.address_size 32", `line 3: got "32", want 64`},
		{".version 7.0\n.target compute_70\n", "line 2: got \"compute_70\", want an architecture"},
		{header + ".func f() { ret; }", "line 4: got \".func\", want .visible .entry"},
		{header + "/* no end", "a comment without an end"},
		{header + "#", "the character '#'"},
		{header + ".entry k(.param .u64 p, .param .u32 p) {}", "a name that is not taken"},
		{header + ".entry k() {", "got the end of the text, want a statement or }"},
		{header + ".entry k() {} .entry k() {}", "a name that is not taken"},
		{header + ".shared .b8 x[50000];", "from 1 to 49152"},
		{header + ".extern .shared .b8 x;", "want [] after"},
		{header + ".shared .align 3 .b8 x[5];", "got 3, want a power of two"},
		{header + ".entry k(.param .b8 x[5000]) {}", "from 1 to 4096"},
		{body("frobnicate.u32 %r0, %r1;"), `line 7: got "frobnicate", want an instruction`},
		{body("add.rn.u32 %r0, %r1, %r2;"), "with type .u32"},
		{body("add.u32.extra %r0, %r1, %r2;"), "add with .extra, want another modifier, or none"},
		{body("add.u8 %r0, %r1, %r2;"), "want one of the types .u16"},
		{body("add.u32 %r0, %r1;"), "got add with 2 operands, want 3"},
		{body("add.u32 %r0, %r1, %f;"), "%f of type .f32, want one of type .u32"},
		{body("add.u32 %r0, %r1, %rd;"), "%rd of type .u64, want one of type .u32"},
		{body("add.u32 %r9, %r1, %r2;"), `got "%r9", want a register of type .u32 for the result`},
		{body("add.u32 5, %r1, %r2;"), `got "5", want a register`},
		{body("add.u32 %r0, %r1, 0x100000000;"), "an integer that fits .u32"},
		{body("add.u32 %r0, %r1, -2147483649;"), "an integer that fits .u32"},
		{body("add.f32 %f, %f, 1;"), "a literal of type .f32: 0f and 8"},
		{body("add.f32 %f, %f, 0f3F8;"), "a literal of type .f32"},
		{body("add.u32 %r0, %r1, %tid.x;"), "want a register or a literal"},
		{body("mov.u64 %rd, %tid.x;"), "%tid.x of type .u32, want one of type .u64"},
		{body("mov.u32 %r0, %clock;"), "want a register or a literal"},
		{body("cvt.f32.u32 %f, %r0;"), "rounding left out, want .rn"},
		{body("cvt.u32.f32 %r0, %f;"), "rounding left out, want .rni"},
		{body("cvt.rn.u64.u32 %rd, %r0;"), "rounding .rn, want none"},
		{body("cvt.sat.u64.u32 %rd, %r0;"), "a conversion of a smaller range"},
		{body("fma.f32 %f, %f, %f, %f;"), "without a rounding"},
		{body("div.f32 %f, %f, %f;"), "without a rounding"},
		{body("setp.lo.s32 %p, %r0, %r1;"), "a comparison that the type has"},
		{body("setp.lt.b32 %p, %r0, %r1;"), "a comparison that the type has"},
		{body("ld.global.u32 %r0, %rd;"), "an address in brackets"},
		{body("ld.global.u32 %r0, [%r1];"), "an address in a register of 64 bits"},
		{body("ld.global.u32 %r0, [w];"), "an address in a register of 64 bits"},
		{body("ld.shared.u32 %r0, [w+4];"), "an access within the 4 bytes of w"},
		{body("ld.global.v4.u64 {%rd, %rd, %rd, %rd}, [%rd];"), "a vector of 32 bytes, want at most 16"},
		{body("ld.global.v2.u32 %r0, [%rd];"), "a vector of 2"},
		{body("ld.global.u64 %r0, [%rd];"), "want a register of type .u64"},
		{body("ld.relaxed.global.u32 %r0, [%rd];"), ".cta, .gpu, .sys"},
		{body("st.param.u32 [out], %r0;"), "st with .param"},
		{body("st.global.nc.u32 [%rd], %r0;"), "st with .nc"},
		{body("atom.global.add.b32 %r0, [%rd], 1;"), "want one of the types .u32"},
		{body("red.global.exch.b32 [%rd], 1;"), "red with .exch"},
		{body("bra nowhere;"), "a label of the kernel"},
		{body("L: L: bra L;"), "a label that line 7 has not taken"},
		{body("@%r0 bra L;"), "a predicate register"},
		{body("bar.arrive 0;"), "bar with .arrive, want .sync"},
		{body("shfl.up.b32 %r0, %r1, 1, 0;"), "want .sync"},
		{body("mov.b32 {%h, %h, %h}, %r0;"), "a vector of 3"},
		{body(".reg .u32 %tid;"), "a name that is not taken"},
		{body(".reg .u8 b;"), "the type of a register"},
		{body(".reg .b32 %q<70000>;"), "a number of registers from 1 to 65536"},
		{body(".reg .b32 %q<65536>;"), "at most 65536 registers"},
		{body("add.u32 %r0 %r1, %r2;"), `want ","`},
		{body("add.u32 %r0, %r1, ;"), "want an operand"},
		{body("ld.global.u32 %r0, [%rd*4];"), "the character '*'"},
		{body("ld.global.u32 %r0, [%rd+%r1];"), "an offset of 32 bits"},
	} {
		_, err := ptx.Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("text %d: got the error %v, want one with %q", i, err, c.want)
		}
	}
}

// statements are seeds of the search, a kernel for each.
var statements = []string{"add.sat.s32 %s0, %s1, -5;", "fma.rm.ftz.f32 %f0, %f1, 0f3F800000, %f2;", "setp.ltu.and.f32 %p0|%p1, %f0, %f1, !%p2;",
	"cvt.rzi.sat.u32.f32 %r0, %f0;", "ld.global.v2.u32 {%r0, _}, [%out+8];", "@!%p0 st.volatile.global.u8 [%out], 255;", "atom.global.cas.b32 %r0, [%out], 1, 2;",
	"shfl.sync.bfly.b32 %r0|%p0, %r1, 1, 0x1f, -1;", "bar.sync 0;", "{ .reg .b64 a<3>; mov.b64 a0, {%r0, %r1}; }", ".shared .align 8 .b8 w[8]; ld.shared.u32 %r0, [w+4];",
	"L: add.u32 %r0, %r0, %tid; @%p0 bra.uni L;", "mov.u64 %rd0, out; ld.param.u8 %r0, [%rd0];"}

func FuzzParse(f *testing.F) {
	f.Add(loopText)
	for _, s := range statements {
		f.Add(text("seed: "+s, "", s))
		delete(texts, "seed: "+s)
	}
	f.Fuzz(func(t *testing.T, s string) { tryText(t, s) })
}

// tryText parses a text and runs its kernels if there are any. It may fail,
// with an error that has a line, and must not panic.
func tryText(t *testing.T, s string) {
	m, err := ptx.Parse(s)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "ptx.Parse: line ") {
			t.Errorf("got the error %q, want one with a line", err)
		}
		return
	}
	for _, name := range m.Kernels() {
		k, err := m.Kernel(name)
		if err != nil {
			t.Fatal(err)
		}
		h := newHeap(64)
		l := launch(h, 2, 34, 1)
		for _, p := range k.Params() {
			if p.Size == 8 {
				l.Args = append(l.Args, arg(h.base, 8))
			} else {
				l.Args = append(l.Args, make([]byte, p.Size))
			}
		}
		l.Steps = 2_000
		_, err = k.Run(l)
		if f := (*ptx.Fault)(nil); err != nil && !errors.As(err, &f) {
			t.Errorf("got the error %v, want a fault", err)
		}
	}
}

var pieces = regexp.MustCompile(`[%$\w]+|\.\w+|\s+|.`)

// TestMangled changes texts token by token: most of what comes out is close to
// a module.
func TestMangled(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var all []string
	for _, s := range append(slices.Clone(statements), "ret;", "vote.sync.all.pred %p0, %p1, -1;", "red.shared.add.f32 [%rd0], 0f00000000;", "testp.number.f64 %p0, %d0;") {
		all = append(all, text("mangled: "+s, "", s))
		delete(texts, "mangled: "+s)
	}
	var words []string
	for _, s := range all {
		words = append(words, pieces.FindAllString(s[len(header):], -1)...)
	}
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	for range n {
		p := pieces.FindAllString(all[r.IntN(len(all))], -1)
		for range 1 + r.IntN(3) {
			from := 12 // mostly behind the header
			if r.IntN(20) == 0 {
				from = 0
			}
			i := from + r.IntN(len(p)-from)
			switch r.IntN(3) {
			case 0:
				p = slices.Delete(p, i, i+1)
			case 1:
				p[i] = words[r.IntN(len(words))]
			default:
				p = slices.Insert(p, i, words[r.IntN(len(words))])
			}
		}
		s := strings.Join(p, "")
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Fatalf("panic %v for\n%s", v, s)
				}
			}()
			tryText(t, s)
		}()
	}
}

// assembler finds ptxas: a file that $TENURE_PTXAS names, or one in PATH.
func assembler(t *testing.T) string {
	t.Helper()
	if name := os.Getenv("TENURE_PTXAS"); name != "" {
		return name
	}
	name, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("no ptxas in PATH; $TENURE_PTXAS can name one: pip install nvidia-cuda-nvcc-cu12 has it")
	}
	return name
}

// TestPtxas assembles the texts of the tests, so that the subset is a part of
// the language. It runs after the tests that add them.
func TestPtxas(t *testing.T) {
	name := assembler(t)
	dir := t.TempDir()
	texts["loop"] = loopText
	for title, s := range texts {
		file := filepath.Join(dir, strings.NewReplacer(" ", "_", ":", "_", "/", "_").Replace(title)+".ptx")
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		arch := "sm_80"
		if out, err := exec.Command(name, "-arch="+arch, "-O0", "-o", os.DevNull, file).CombinedOutput(); err != nil {
			t.Errorf("%s for %s: %v\n%s", title, arch, err, out)
		}
	}
}
