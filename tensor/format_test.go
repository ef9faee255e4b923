package tensor

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite golden files")

func counting(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i)
	}
	return v
}

// formatted are the tensors whose text testdata/format.txtar holds.
func formatted(t *testing.T) (names []string, texts map[string]string) {
	texts = map[string]string{}
	add := func(name string) func(x *Tensor, err error) {
		return func(x *Tensor, err error) {
			t.Helper()
			names = append(names, name)
			texts[name] = fmt.Sprint(ok(x, err)(t))
			release(t, x)
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	add("scalar")(Of([]float32{1.5}))
	add("vector")(Of([]float32{0, -1.25, 3.14159274, 1e-20, 123456792, float32(inf)}, 6))
	add("f64")(Of([]float64{0.1, -1e300, nan, -inf, math.Copysign(0, -1), 1. / 3}, 2, 3))
	add("half")(Of([]dtype.Float16{dtype.Float16FromFloat32(0.1), dtype.Float16FromFloat32(-2)}, 2))
	add("bfloat")(Of([]dtype.BFloat16{dtype.BFloat16FromFloat32(0.1), dtype.BFloat16FromFloat32(1e30)}, 2))
	add("bool")(Of([]bool{true, false, false, true}, 2, 2))
	add("integers i8")(Of([]int8{-128, 0, 127}, 3))
	add("integers u8")(Of([]uint8{0, 255}, 2))
	add("integers i16")(Of([]int16{-32768, 5}, 2, 1))
	add("integers u16")(Of([]uint16{65535}, 1))
	add("integers u32")(Of([]uint32{math.MaxUint32}, 1))
	add("integers i64")(Of([]int64{math.MinInt64, 1}, 1, 2))
	add("integers u64")(Of([]uint64{math.MaxUint64}, 1, 1))
	add("complex")(Of([]complex64{1 - 2i, 0.5i}, 2))
	add("complex f64")(Of([]complex128{complex(inf, nan)}, 1))
	add("float8")(FromBytes(dtype.F8E4M3FN, shape.MustOf(2), []byte{0x38, 0xff}))
	add("float6")(FromBytes(dtype.F6E2M3FN, shape.MustOf(3), []byte{0x08, 0x02, 0x00}))
	add("scale")(FromBytes(dtype.F8E8M0, shape.MustOf(2), []byte{0x7f, 0x80}))
	add("opaque")(FromBytes(dtype.Opaque, shape.MustOf(1), []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	add("packed i2")(FromBytes(dtype.I2, shape.MustOf(5), []byte{0b11100100, 0b10}))
	add("packed f4")(FromBytes(dtype.F4E2M1, shape.MustOf(2), []byte{0x7a}))
	add("empty")(New(dtype.F32, shape.MustOf(2, 0, 3)))
	add("three dimensions")(Of(counting(12), 2, 2, 3))
	add("long vector")(Of(counting(2000), 2000))
	add("large")(Of(counting(4000), 2, 40, 50))
	add("large, few columns")(Of(counting(1002), 334, 3))
	add("large, seven columns")(Of(counting(1400), 200, 7))
	x := ok(Of(counting(6), 2, 3))(t)
	add("transposed")(x.Transpose())
	add("repeated")(x.Broadcast(2, 2, 3))
	one := ok(Of([]uint8{7}, 1))(t)
	add("beyond all memory")(one.Broadcast(1<<20, 1<<20))
	release(t, x, one)
	return names, texts
}

func TestStringGolden(t *testing.T) {
	const path = "testdata/format.txtar"
	names, texts := formatted(t)
	if *update {
		var ar txtar.Archive
		ar.Comment = []byte("What String shows, one file per tensor of TestStringGolden.\n\n")
		for _, name := range names {
			ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(texts[name] + "\n")})
		}
		if err := os.WriteFile(path, txtar.Format(&ar), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(ar.Files) != len(names) {
		t.Errorf("%s: got %d files, want %d", path, len(ar.Files), len(names))
	}
	for _, f := range ar.Files {
		if got := texts[f.Name] + "\n"; got != string(f.Data) {
			t.Errorf("%s: got\n%swant\n%s", f.Name, got, f.Data)
		}
	}
}

func TestStringOfTensorsThatShowNoValues(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1)
	w := ok(Write[int32](x))(t)
	if got, want := x.String(), "i32[1] (being written)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.Release()
	release(t, x)
	if got, want := x.String(), "i32[1] (released)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := (*Tensor)(nil).String(), "tensor(none)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFormatVerbs(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]float32{1, -2.5, 1. / 3, float32(math.Inf(1))}, 2, 2))(t)
	long := ok(Of(counting(1001), 1001))(t)
	i := ok(Of([]int8{-3}, 1))(t)
	c := ok(Of([]complex64{1 - 2i}, 1))(t)
	for _, row := range []struct {
		format string
		x      *Tensor
		want   string
	}{
		{"%v", x, x.String()}, {"%s", i, "i8[1] [-3]"}, {"%.2f", x, "f32[2,2]\n[[ 1.00 -2.50]\n [ 0.33   inf]]"}, {"%.1e", i, "i8[1] [-3]"},
		{"%g", x, "f32[2,2]\n[[         1       -2.5]\n [0.33333334        inf]]"}, {"%.1F", c, "c64[1] [1.0-2.0i]"},
		{"%d", x, "%!d(f32[2,2])"}, {"%q", nil, "%!q(tensor(none))"}, {"%v", nil, "tensor(none)"},
	} {
		if got := fmt.Sprintf(row.format, row.x); got != row.want {
			t.Errorf("%s: got %q, want %q", row.format, got, row.want)
		}
	}
	if short, all := fmt.Sprint(long), fmt.Sprintf("%+v", long); !strings.Contains(short, "...") || strings.Contains(all, "...") || !strings.Contains(all, " 500 ") {
		t.Errorf("got %d bytes for a long tensor and %d for all of it, want the middle in the second alone", len(short), len(all))
	}
	release(t, x, long, i, c)
}
