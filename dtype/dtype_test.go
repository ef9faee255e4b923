package dtype

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"
	"text/tabwriter"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// all holds every type but Invalid.
func all() []DType {
	var ds []DType
	for d := Invalid + 1; d < count; d++ {
		ds = append(ds, d)
	}
	return ds
}

func TestTypesGolden(t *testing.T) {
	var got bytes.Buffer
	w := tabwriter.NewWriter(&got, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tbits\tsize\tonnx\tdlpack\tkind")
	for d := Invalid; d < count; d++ {
		dl := "-"
		if code, bits, lanes, ok := d.DLPack(); ok {
			dl = fmt.Sprintf("%d:%d:%d", code, bits, lanes)
		}
		var kinds []string
		for _, k := range []struct {
			is   bool
			name string
		}{{d.IsFloat(), "float"}, {d.IsInt(), "int"}, {d.IsComplex(), "complex"}, {d.IsSigned(), "signed"}} {
			if k.is {
				kinds = append(kinds, k.name)
			}
		}
		if len(kinds) == 0 {
			kinds = []string{"-"}
		}
		fmt.Fprintf(w, "%v\t%d\t%d\t%d\t%s\t%s\n", d, d.Bits(), d.Size(), d.ONNX(), dl, strings.Join(kinds, ","))
	}
	w.Flush()

	const file = "testdata/types.txtar"
	if *update {
		a := &txtar.Archive{
			Comment: []byte("What the package says of every type; dlpack is code:bits:lanes.\n\n"),
			Files:   []txtar.File{{Name: "want", Data: got.Bytes()}},
		}
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := a.Files[0].Data; !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got:\n%s\nwant:\n%s", got.Bytes(), want)
	}
}

// The enumeration of ONNX, in its order from 1.
var onnxOrder = []DType{
	F32, U8, I8, U16, I16, I32, I64, String, Bool, F16, F64, U32, U64, C64, C128, BF16,
	F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, U4, I4, F4E2M1, F8E8M0, U2, I2, F6E2M3FN, F6E3M2FN,
}

func TestONNX(t *testing.T) {
	inONNX := map[DType]bool{}
	for i, want := range onnxOrder {
		code := int32(i + 1)
		inONNX[want] = true
		if got, err := FromONNX(code); err != nil || got != want {
			t.Errorf("FromONNX(%d): got %v, %v, want %v", code, got, err, want)
		}
		if got := want.ONNX(); got != code {
			t.Errorf("%v.ONNX(): got %d, want %d", want, got, code)
		}
	}
	for _, d := range all() {
		if !inONNX[d] && d.ONNX() != 0 {
			t.Errorf("%v.ONNX(): got %d, want 0", d, d.ONNX())
		}
	}
	for _, code := range []int32{0, -1, int32(len(onnxOrder)) + 1, 256, math.MaxInt32, math.MinInt32} {
		if got, err := FromONNX(code); !errors.Is(err, ErrDType) || got != Invalid {
			t.Errorf("FromONNX(%d): got %v, %v, want invalid and ErrDType", code, got, err)
		}
	}
}

func TestDLPack(t *testing.T) {
	// Every code of DLDataTypeCode with every width that has a type.
	codes := []struct {
		code  uint8
		types map[uint8]DType
	}{
		{0, map[uint8]DType{2: I2, 4: I4, 8: I8, 16: I16, 32: I32, 64: I64}},
		{1, map[uint8]DType{2: U2, 4: U4, 8: U8, 16: U16, 32: U32, 64: U64}},
		{2, map[uint8]DType{16: F16, 32: F32, 64: F64}},
		{3, map[uint8]DType{64: Opaque}},
		{4, map[uint8]DType{16: BF16}},
		{5, map[uint8]DType{32: C32, 64: C64, 128: C128}},
		{6, map[uint8]DType{8: Bool}},
		{7, map[uint8]DType{8: F8E3M4}},
		{8, map[uint8]DType{8: F8E4M3}},
		{9, map[uint8]DType{8: F8E4M3B11FNUZ}},
		{10, map[uint8]DType{8: F8E4M3FN}},
		{11, map[uint8]DType{8: F8E4M3FNUZ}},
		{12, map[uint8]DType{8: F8E5M2}},
		{13, map[uint8]DType{8: F8E5M2FNUZ}},
		{14, map[uint8]DType{8: F8E8M0}},
		{15, map[uint8]DType{6: F6E2M3FN}},
		{16, map[uint8]DType{6: F6E3M2FN}},
		{17, map[uint8]DType{4: F4E2M1}},
		{18, map[uint8]DType{32: BC32}},
	}
	seen := map[DType]bool{Invalid: true, String: true}
	for _, c := range codes {
		for bits := range 256 {
			want := c.types[uint8(bits)]
			got, err := FromDLPack(c.code, uint8(bits), 1)
			if got != want || (err == nil) != (want != Invalid) || err != nil && !errors.Is(err, ErrDType) {
				t.Errorf("FromDLPack(%d, %d, 1): got %v, %v, want %v", c.code, bits, got, err, want)
			}
			if want == Invalid {
				continue
			}
			seen[want] = true
			if code, b, lanes, ok := want.DLPack(); code != c.code || b != uint8(bits) || lanes != 1 || !ok {
				t.Errorf("%v.DLPack(): got %d, %d, %d, %v, want %d, %d, 1, true", want, code, b, lanes, ok, c.code, bits)
			}
		}
	}
	for d := Invalid; d < count; d++ {
		if !seen[d] {
			t.Errorf("%v is in no row", d)
		}
	}
	for _, d := range []DType{Invalid, String, count} {
		if code, bits, lanes, ok := d.DLPack(); ok || code != 0 || bits != 0 || lanes != 0 {
			t.Errorf("%v.DLPack(): got %d, %d, %d, %v, want zeros and false", d, code, bits, lanes, ok)
		}
	}
	for _, c := range []struct {
		code, bits uint8
		lanes      uint16
	}{{19, 32, 1}, {255, 8, 1}, {2, 32, 0}, {2, 32, 4}} {
		if got, err := FromDLPack(c.code, c.bits, c.lanes); !errors.Is(err, ErrDType) || got != Invalid {
			t.Errorf("FromDLPack(%d, %d, %d): got %v, %v, want invalid and ErrDType", c.code, c.bits, c.lanes, got, err)
		}
	}
}

func TestParse(t *testing.T) {
	names := map[string]bool{}
	for _, d := range all() {
		name := d.String()
		if names[name] || name != strings.ToLower(name) || name == "" {
			t.Errorf("%d: name %q is empty, not lower case, or taken", uint8(d), name)
		}
		names[name] = true
		if got, err := Parse(name); err != nil || got != d {
			t.Errorf("Parse(%q): got %v, %v, want %v", name, got, err, d)
		}
	}
	for _, name := range []string{"", "invalid", "F32", "float32", "f32 ", "i128", "dtype(99)"} {
		got, err := Parse(name)
		if !errors.Is(err, ErrDType) || got != Invalid {
			t.Errorf("Parse(%q): got %v, %v, want invalid and ErrDType", name, got, err)
			continue
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("Parse(%q): error %q does not say what it got", name, err)
		}
	}
}

// A value that is none of the constants can be made by a conversion; it behaves
// as Invalid and says its number.
func TestOutOfRange(t *testing.T) {
	d := DType(200)
	if d.IsValid() || Invalid.IsValid() || !F32.IsValid() || !Opaque.IsValid() {
		t.Errorf("IsValid: got %v %v %v %v, want false false true true", d.IsValid(), Invalid.IsValid(), F32.IsValid(), Opaque.IsValid())
	}
	if d.String() != "dtype(200)" || d.Bits() != 0 || d.Size() != 0 || d.ONNX() != 0 || d.IsFloat() || d.IsInt() || d.IsSigned() || d.IsComplex() {
		t.Errorf("got %v with %d bits, want dtype(200) with nothing", d, d.Bits())
	}
	if _, err := d.ByteLen(1); !errors.Is(err, ErrDType) {
		t.Errorf("ByteLen: got %v, want ErrDType", err)
	}
}

func TestByteLen(t *testing.T) {
	for _, c := range []struct {
		d    DType
		n    int
		want int
	}{
		{F32, 0, 0}, {F32, 3, 12}, {C128, 2, 32}, {Bool, 5, 5},
		{I4, 0, 0}, {I4, 1, 1}, {I4, 2, 1}, {I4, 3, 2}, {U2, 1, 1}, {U2, 4, 1}, {U2, 5, 2},
		{F6E2M3FN, 1, 1}, {F6E2M3FN, 2, 2}, {F6E2M3FN, 3, 3}, {F6E2M3FN, 4, 3}, {F6E2M3FN, 5, 4},
		{U8, math.MaxInt, math.MaxInt}, {U4, math.MaxInt, math.MaxInt/2 + 1}, {F64, math.MaxInt / 8, math.MaxInt / 8 * 8},
	} {
		if got, err := c.d.ByteLen(c.n); err != nil || got != c.want {
			t.Errorf("%v.ByteLen(%d): got %d, %v, want %d", c.d, c.n, got, err, c.want)
		}
	}
	for _, c := range []struct {
		d      DType
		n      int
		isType bool
	}{
		{Invalid, 1, true}, {String, 0, true}, {F32, -1, false}, {I4, math.MinInt, false},
		{U16, math.MaxInt/2 + 1, false}, {C128, math.MaxInt, false}, {C128, math.MaxInt/16 + 1, false},
	} {
		if got, err := c.d.ByteLen(c.n); err == nil || got != 0 || errors.Is(err, ErrDType) != c.isType {
			t.Errorf("%v.ByteLen(%d): got %d, %v, want an error with errors.Is(ErrDType) %v", c.d, c.n, got, err, c.isType)
		}
	}
}

func TestByteLenAgainstBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(all()).Filter(func(d DType) bool { return d != String }).Draw(t, "type")
		n := rapid.IntRange(0, math.MaxInt).Draw(t, "n") >> rapid.IntRange(0, 62).Draw(t, "shift")
		want := new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(int64(d.Bits())))
		want.Add(want, big.NewInt(7)).Rsh(want, 3)
		got, err := d.ByteLen(n)
		if fits := want.Cmp(big.NewInt(math.MaxInt)) <= 0; fits != (err == nil) || fits && int64(got) != want.Int64() {
			t.Fatalf("%v.ByteLen(%d): got %d, %v, want %v", d, n, got, err, want)
		}
	})
}

type (
	celsius float32
	flags   uint16
	half    Float16
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ got, want DType }{
		{Of[float32](), F32}, {Of[float64](), F64}, {Of[int8](), I8}, {Of[int16](), I16}, {Of[int32](), I32}, {Of[int64](), I64},
		{Of[uint8](), U8}, {Of[uint16](), U16}, {Of[uint32](), U32}, {Of[uint64](), U64}, {Of[bool](), Bool},
		{Of[complex64](), C64}, {Of[complex128](), C128},
		{Of[Float16](), F16}, {Of[BFloat16](), BF16}, {Of[Float8E4M3FN](), F8E4M3FN}, {Of[Float8E4M3FNUZ](), F8E4M3FNUZ},
		{Of[Float8E5M2](), F8E5M2}, {Of[Float8E5M2FNUZ](), F8E5M2FNUZ}, {Of[Float8E8M0](), F8E8M0},
		{Of[Float8E3M4](), F8E3M4}, {Of[Float8E4M3](), F8E4M3}, {Of[Float8E4M3B11FNUZ](), F8E4M3B11FNUZ},
		{Of[celsius](), F32}, {Of[flags](), U16}, {Of[half](), U16},
		{OfType(reflect.TypeFor[float32]()), F32}, {OfType(reflect.TypeFor[BFloat16]()), BF16}, {OfType(reflect.TypeFor[half]()), U16},
		{OfType(reflect.TypeFor[int]()), Invalid}, {OfType(reflect.TypeFor[string]()), Invalid}, {OfType(reflect.TypeFor[[]float32]()), Invalid},
		{OfType(reflect.TypeFor[error]()), Invalid}, {OfType(nil), Invalid},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	var d DType
	var n int
	var b uint8
	var f float32
	for name, run := range map[string]func(){
		"Of":      func() { d = max(Of[float32](), Of[Float16](), Of[celsius]()) },
		"ByteLen": func() { n, _ = F32.ByteLen(1000) },
		"f16":     func() { f = Float16FromFloat32(f + 1).Float32() },
		"f8":      func() { b = uint8(Float8E5M2FromFloat32(f, true)); f = Float8E5M2(b).Float32() },
		"packed":  func() { var buf [3]byte; F6E2M3FN.PackedPut(buf[:], 1, b); b = F6E2M3FN.PackedAt(buf[:], 1) },
	} {
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s: got %v allocations per run, want 0", name, got)
		}
	}
	if d == Invalid || n != 4000 {
		t.Errorf("got %v and %d: the calls were not made", d, n)
	}
}
