package op_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// tableCalls returns the calls of the tables in testdata; valid leaves those
// out that are errors.
func tableCalls(t testing.TB, valid bool) []*op.Sig {
	t.Helper()
	files, err := filepath.Glob("testdata/infer/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, error %v, want the tables", files, err)
	}
	var calls []*op.Sig
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			call, want, ok := strings.Cut(line, " -> ")
			if !ok || valid && strings.HasPrefix(want, "!") {
				continue
			}
			types, _, _ := strings.Cut(want, " ; ")
			results := 1
			if !strings.HasPrefix(want, "!") {
				results = len(fields(types))
			}
			calls = append(calls, parseCall(t, line, call, results))
		}
	}
	return calls
}

var hostileInts = []int64{0, 1, 2, 3, -1, -2, 7, 64, 65, 1 << 31, 1 << 58, 1<<58 - 1, 1<<63 - 1, -1 << 63, -1 << 58}

func hostileInt() *rapid.Generator[int64] { return rapid.SampledFrom(hostileInts) }

func anyDim() *rapid.Generator[shape.Dim] {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 4), shape.N),
		rapid.Map(rapid.SampledFrom([]int{1 << 20, 1 << 40, 1<<58 - 1, 1 << 58}), shape.N),
		rapid.Just(shape.Unknown), rapid.Just(shape.Sym("n")), rapid.Just(shape.Sym("a b")),
	)
}

func anyType(rt *rapid.T) op.Type {
	dt := dtype.DType(rapid.IntRange(0, 40).Draw(rt, "dtype")) // some are none
	if rapid.IntRange(0, 3).Draw(rt, "common") > 0 {
		dt = rapid.SampledFrom([]dtype.DType{dtype.F32, dtype.I64, dtype.Bool}).Draw(rt, "dtype")
	}
	if dt == dtype.Invalid || rapid.IntRange(0, 7).Draw(rt, "any rank") == 0 {
		return op.Type{DType: dt}
	}
	dims := rapid.SliceOfN(anyDim(), 0, 5).Draw(rt, "dims")
	sh, err := shape.FromDims(dims...)
	if err != nil {
		sh = shape.MustOf(2, 3)
	}
	return op.Type{DType: dt, Shape: sh}
}

func anyAttr(rt *rapid.T, def op.AttrDef) op.Attr {
	a := op.Attr{Name: def.Name}
	switch def.Kind {
	case op.Int:
		a.Value = hostileInt().Draw(rt, def.Name)
	case op.Float:
		a.Value = rapid.Float64().Draw(rt, def.Name)
	case op.String:
		a.Value = rapid.SampledFrom([]string{"", "max", "average", "SAME_UPPER", "reflect", "tf_crop_and_resize", "not_larger", "add", "x"}).Draw(rt, def.Name)
	case op.DTypeKind:
		a.Value = dtype.DType(rapid.IntRange(0, 255).Draw(rt, def.Name))
	case op.Ints:
		a.Value = rapid.SliceOfN(hostileInt(), 0, 5).Draw(rt, def.Name)
	case op.Floats:
		a.Value = rapid.SliceOfN(rapid.Float64(), 0, 5).Draw(rt, def.Name)
	case op.Strings:
		a.Value = []string{"x"}
	}
	return a
}

// mutate draws a call near one of the tables' calls: attributes, operand types
// and known values change at random.
func mutate(rt *rapid.T, base *op.Sig) *op.Sig {
	s := &op.Sig{Def: base.Def, Attrs: base.Attrs, Regions: base.Regions}
	s.Args = append([]op.Type(nil), base.Args...)
	s.Results = make([]op.Type, rapid.SampledFrom([]int{len(base.Results), 1, 2, 3}).Draw(rt, "results"))
	for _, a := range s.Def.Attrs {
		if rapid.IntRange(0, 3).Draw(rt, "change "+a.Name) == 0 {
			s.Attrs = s.Attrs.With(a.Name, anyAttr(rt, a).Value)
		}
	}
	if rapid.IntRange(0, 7).Draw(rt, "one more") == 0 {
		s.Args = append(s.Args, anyType(rt))
	}
	known := map[int][]byte{}
	for i := range s.Args {
		if rapid.IntRange(0, 3).Draw(rt, "change operand") == 0 {
			s.Args[i] = anyType(rt)
		}
		if base.Known != nil && i < len(base.Args) {
			if data, ok := base.Known(i); ok {
				known[i] = data
			}
		}
		if n, err := s.Args[i].Bytes(); err == nil && n <= 64 && rapid.IntRange(0, 2).Draw(rt, "change value") == 0 {
			known[i] = hostileBytes(rt, n)
		}
	}
	s.Known = func(arg int) ([]byte, bool) { data, ok := known[arg]; return data, ok }
	return s
}

func hostileBytes(rt *rapid.T, n int) []byte {
	data := []byte{}
	for len(data) < n {
		v := uint64(hostileInt().Draw(rt, "value"))
		for i := range 8 {
			data = append(data, byte(v>>(8*i)))
		}
	}
	return data[:n]
}

// No call makes a shape rule or an alias rule panic, and the rules agree with
// each other: a view lies inside its operand.
func checkNoPanic(rt *rapid.T, calls []*op.Sig) {
	s := mutate(rt, rapid.SampledFrom(calls).Draw(rt, "call"))
	if op.InferTypes(s) != nil {
		return
	}
	for r, typ := range s.Results {
		if typ.IsZero() || !typ.DType.IsValid() {
			rt.Fatalf("%s %v %v: result %d has no type", s.Def.Name, s.Args, s.Attrs, r)
		}
		if typ.Shape != nil && typ.Shape.Rank() > op.MaxRank {
			rt.Fatalf("%s: result %d: got %s, want at most %d dimensions", s.Def.Name, r, typ, op.MaxRank)
		}
		for a := range s.Args {
			may := s.MayAlias(a, r)
			kind, offset := s.AliasOf(a, r)
			if kind != op.View {
				continue
			}
			if !may {
				rt.Fatalf("%s %v: view of operand %d that may not alias it", s.Def.Name, s.Args, a)
			}
			have, err1 := s.Args[a].Bytes()
			want, err2 := typ.Bytes()
			if err1 == nil && err2 == nil && (offset < 0 || offset+want > have) {
				rt.Fatalf("%s %v -> %v: got a view of %d bytes at %d of %d", s.Def.Name, s.Args, s.Results, want, offset, have)
			}
		}
	}
	// Also the resolved forms that kernels use.
	_, _ = s.AliasOf(len(s.Args), 0)
	askResolved(s)
}

// askResolved runs what kernels call after types are inferred.
func askResolved(s *op.Sig) {
	switch s.Def.Name {
	case "conv", "fused_conv":
		_, _ = s.ConvAxes()
		if s.Def.Name == "fused_conv" {
			_, _ = s.FusedPoolAxes()
		}
	case "conv_transpose":
		_, _ = s.ConvTransposeAxes()
	case "max_pool", "average_pool":
		_, _ = s.PoolAxes()
	case "slice":
		_, _, _ = s.SliceAxes()
	case "resize":
		_, _, _ = s.ResizeAxes()
	case "range":
		_, _, _ = s.RangeLen()
	}
}

func TestInferTypesNeverPanics(t *testing.T) {
	calls := tableCalls(t, false)
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			checkNoPanic(rt, calls)
		}
	})
}

func FuzzInferTypes(f *testing.F) {
	calls := tableCalls(f, false)
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) { checkNoPanic(rt, calls) }))
}

// The types that a rule infers for a call of which less is known never
// contradict those that it infers once all is known: a size becomes the symbol
// that stands for it, or unknown, a rank becomes unknown, a known value is
// forgotten.
func TestLessKnownNeverContradicts(t *testing.T) {
	var calls []*op.Sig
	for _, s := range tableCalls(t, true) {
		static := true
		for _, a := range s.Args {
			static = static && (a.IsZero() || a.IsStatic())
		}
		if err := op.InferTypes(s); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Results {
			static = static && r.IsStatic()
		}
		if static {
			calls = append(calls, s)
		}
	}
	if len(calls) < 150 {
		t.Fatalf("got %d static calls in the tables, want more", len(calls))
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			s := rapid.SampledFrom(calls).Draw(rt, "call")
			blurred := blur(rt, s)
			if err := op.InferTypes(blurred); err != nil {
				rt.Fatalf("%s %v %v -> %v\nless known: %v: got error %v", s.Def.Name, s.Args, s.Attrs, s.Results, blurred.Args, err)
			}
			for i, want := range s.Results {
				if !covers(blurred.Results[i], want) {
					rt.Fatalf("%s %v %v -> %v\nless known: %v -> %v", s.Def.Name, s.Args, s.Attrs, s.Results, blurred.Args, blurred.Results)
				}
			}
		}
	})
}

func blur(rt *rapid.T, s *op.Sig) *op.Sig {
	out := &op.Sig{Def: s.Def, Attrs: s.Attrs, Regions: s.Regions, Results: make([]op.Type, len(s.Results))}
	keep := make([]bool, len(s.Args))
	for i, a := range s.Args {
		keep[i] = rapid.Bool().Draw(rt, "value known")
		if a.Shape != nil && rapid.IntRange(0, 3).Draw(rt, "blur") > 0 {
			if a.Shape = blurShape(rt, a.Shape); a.Shape == nil || !a.Shape.IsStatic() {
				keep[i] = false
			}
		}
		out.Args = append(out.Args, a)
	}
	out.Known = func(arg int) ([]byte, bool) {
		if !keep[arg] || s.Known == nil {
			return nil, false
		}
		return s.Known(arg)
	}
	return out
}

func blurShape(rt *rapid.T, s *shape.Shape) *shape.Shape {
	if rapid.IntRange(0, 5).Draw(rt, "forget rank") == 0 {
		return nil
	}
	dims := s.Dims()
	for i := range dims {
		switch rapid.IntRange(0, 3).Draw(rt, "forget size") {
		case 0:
			dims[i] = shape.Unknown
		case 1:
			dims[i] = shape.Sym(fmt.Sprintf("s%d", s.Size(i)))
		}
	}
	out, err := shape.FromDims(dims...)
	if err != nil {
		rt.Fatal(err)
	}
	return out
}

// covers reports whether the static type is one of those that t describes.
func covers(t, static op.Type) bool {
	if t.DType != static.DType || t.Shape == nil {
		return t.DType == static.DType
	}
	if t.Shape.Rank() != static.Shape.Rank() {
		return false
	}
	for i := range t.Shape.Rank() {
		d := t.Shape.Dim(i)
		if sym, ok := d.Symbol(); ok && sym != fmt.Sprintf("s%d", static.Shape.Size(i)) {
			return false
		}
		if n, ok := d.Size(); ok && n != static.Shape.Size(i) {
			return false
		}
	}
	return true
}
