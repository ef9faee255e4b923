package compute

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// packedForms are hashes of what forms make of the same constants: of floats
// by the variant, of bytes by the form.
var packedForms = map[string]string{
	"portable":             "0b672f87d2980461",
	"avx2":                 "93e657b7a65c06d5",
	"avx512":               "8d67c842b79550a8",
	"portable, compressed": "7c06d2cb0f33b6e3",
	"avx2, compressed":     "5a5e793cd78146f5",
	"avx512, compressed":   "ea7f548715a6a3e3",
	"panels of i8 of 70x100 in panels of 16 by 2": "659146a54a84e8f3",
	"panels of u8 of 70x100 in panels of 16 by 2": "866d140c0ab90b16",
	"panels of i8 of 70x100 in panels of 32 by 4": "70f56112052576cd",
	"panels of u8 of 70x100 in panels of 32 by 4": "a76fe559dd760329",

	"panels of i8 of 1x33 filters of 7x9 taps in 1, 6 by 2":  "b42ca573400199cd",
	"panels of u8 of 2x3 filters of 5x6 taps in 2, 3 by 2":   "76ecc7a6d23c710f",
	"panels of i8 of 1x33 filters of 7x9 taps in 1, 11 by 4": "d92e7ea8f5160320",
	"panels of u8 of 2x3 filters of 5x6 taps in 2, 3 by 4":   "a3bb678710b6b614",
}

// TestFormsVersion notices forms that make something else than they did. Then
// FormsVersion grows, and the new hashes are written above for all variants,
// on a machine that runs them: other programs may have packed the same weights
// by the old code.
func TestFormsVersion(t *testing.T) {
	if FormsVersion != 3 {
		t.Fatalf("got version %d, want the one that the hashes are of", FormsVersion)
	}
	for _, v := range machine.Variants() {
		for key, hash := range hashesOfForms(t, v) {
			if want, ok := packedForms[key]; !ok || hash != want {
				t.Errorf("%s: %s: got forms with the hash %s, want %q of version %d", v.Name, key, hash, want, FormsVersion)
			}
		}
	}
}

// hashesOfForms returns the hashes of the forms of one variant.
func hashesOfForms(t *testing.T, v *kernel.Variant) map[string]string {
	t.Helper()
	pads := attrs("pads", []int64{1, 1, 1, 1})
	got := map[string]string{}
	for _, c := range []struct {
		name       string
		attrs      op.Attrs
		constant   int
		in         []op.Arg
		compressed bool
	}{
		{"matmul", nil, 1, []op.Arg{random(dtype.F32, 1, -1, 1, 9, 70), random(dtype.F32, 2, -1, 1, 70, 100)}, false},
		{"gemm", attrs("transB", 1), 1, []op.Arg{random(dtype.F32, 1, -1, 1, 9, 70), random(dtype.F32, 3, -1, 1, 100, 70)}, false},
		{"gemm", attrs("alpha", 0.5), 1, []op.Arg{random(dtype.F32, 1, -1, 1, 9, 70), random(dtype.F32, 4, -1, 1, 70, 33)}, false},
		{"conv", pads, 1, []op.Arg{random(dtype.F32, 1, -1, 1, 1, 20, 7, 7), random(dtype.F32, 5, -1, 1, 70, 20, 3, 3)}, false},
		{"conv", pads, 1, []op.Arg{random(dtype.F32, 1, -1, 1, 1, 20, 64, 64), random(dtype.F32, 6, -1, 1, 12, 20, 3, 3)}, false},
		{"conv", attrs("group", 2), 1, []op.Arg{random(dtype.F32, 1, -1, 1, 1, 20, 7, 7), random(dtype.F32, 7, -1, 1, 40, 10, 1, 1)}, false},
		{"matmul_integer", nil, 1, []op.Arg{random(dtype.U8, 1, 0, 255, 9, 70), random(dtype.I8, 2, -128, 127, 70, 100)}, false},
		{"matmul_integer", nil, 1, []op.Arg{random(dtype.I8, 1, -128, 127, 9, 70), random(dtype.U8, 2, 0, 255, 70, 100)}, false},
		{"conv_integer", pads, 1, []op.Arg{random(dtype.U8, 1, 0, 255, 1, 7, 9, 9), random(dtype.I8, 2, -128, 127, 33, 7, 3, 3)}, false},
		{"conv_integer", attrs("group", 2), 1, []op.Arg{random(dtype.U8, 1, 0, 255, 1, 10, 3, 9, 9), random(dtype.U8, 2, 0, 255, 6, 5, 2, 3, 1)}, false},
		{"matmul", nil, 1, []op.Arg{random(dtype.F32, 1, -1, 1, 9, 300), random(dtype.F32, 8, -1, 1, 300, 100)}, true},
		{"gemm", attrs("transB", 1, "alpha", 0.5), 1, []op.Arg{random(dtype.F32, 1, -1, 1, 9, 300), random(dtype.F32, 9, -1, 1, 100, 300)}, true},
	} {
		task, err := bindFor(v, call(t, c.name, c.attrs, 1, c.in...), Constants{Is: func(i int) bool { return i == c.constant }, Compressed: c.compressed})
		if err != nil {
			t.Fatal(err)
		}
		f, ok := task.Forms[c.constant]
		if !ok {
			continue // these kernels read it as it is
		}
		if f.Measure != nil {
			f.Bytes = f.Measure(c.in[c.constant].Data)
		}
		packed := aligned(f.Bytes)
		f.Pack(packed, c.in[c.constant].Data)
		key := f.Name
		if c.in[c.constant].DType == dtype.F32 {
			key = v.Name
			if c.compressed {
				key += ", compressed"
			}
		}
		got[key] = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s%s, %d bytes: %x", got[key], f.Name, f.Bytes, packed)))[:16]
	}
	return got
}
