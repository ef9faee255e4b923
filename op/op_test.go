package op_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// verb matches a line of documentation that begins with a verb in the
// indicative.
var verb = regexp.MustCompile(`^[a-z]{2,}s,? `)

// Every built-in operator has documentation and declares how it treats its
// operands.
func TestBuiltinDeclarations(t *testing.T) {
	defs := op.Builtin().Defs()
	if len(defs) < 100 {
		t.Errorf("got %d operators, want the families", len(defs))
	}
	for _, d := range defs {
		if d.Doc == "" || strings.HasSuffix(d.Doc, ".") || strings.Contains(d.Doc, "\n") {
			t.Errorf("%s: got doc %q, want a line without a full stop", d.Name, d.Doc)
		}
		if !verb.MatchString(d.Doc) {
			t.Errorf("%s: got doc %q, want what it does, beginning with a verb: \"returns ...\"", d.Name, d.Doc)
		}
		if !d.Alias.Declared() {
			t.Errorf("%s: got no alias declaration, want one", d.Name)
		}
		if d.MinArgs < 0 || d.MaxArgs != op.Variadic && d.MinArgs > d.MaxArgs {
			t.Errorf("%s: got %d to %d operands", d.Name, d.MinArgs, d.MaxArgs)
		}
		if d.MaxResults != op.Variadic && d.MinResults > d.MaxResults {
			t.Errorf("%s: got %d to %d results", d.Name, d.MinResults, d.MaxResults)
		}
		if strings.ToLower(d.Name) != d.Name || strings.ContainsAny(d.Name, " .-") {
			t.Errorf("%s: want a name in lower snake case", d.Name)
		}
		if d.ONNX != "" && op.Builtin().LookupONNX(d.ONNX) != d {
			t.Errorf("%s: got another operator for ONNX %q", d.Name, d.ONNX)
		}
		if d.Impure != strings.HasPrefix(d.Name, "random_") || d.Kernel != nil {
			t.Errorf("%s: got impure %t, or a kernel, want neither in a built-in operator, unless it draws numbers", d.Name, d.Impure)
		}
		checkDeclaredRules(t, d)
		checkDeclaredAttrs(t, d)
	}
}

func checkDeclaredRules(t *testing.T, d *op.Def) {
	t.Helper()
	for _, r := range d.Alias.Rules() {
		if r.Kind < op.View || r.Kind > op.Narrow {
			t.Errorf("%s: got alias kind %d", d.Name, r.Kind)
		}
		if r.Arg < op.EveryArg || d.MaxArgs != op.Variadic && r.Arg >= d.MaxArgs {
			t.Errorf("%s: got a rule for operand %d of at most %d", d.Name, r.Arg, d.MaxArgs)
		}
		if r.Result < op.EveryResult || d.MaxResults != op.Variadic && r.Result >= max(d.MaxResults, 1) {
			t.Errorf("%s: got a rule for result %d of at most %d", d.Name, r.Result, d.MaxResults)
		}
		if r.Offset != nil && r.Kind != op.View {
			t.Errorf("%s: got an offset for %s, want one for views only", d.Name, r.Kind)
		}
	}
}

func checkDeclaredAttrs(t *testing.T, d *op.Def) {
	t.Helper()
	seen := map[string]bool{}
	for _, a := range d.Attrs {
		if a.Name == "" || seen[a.Name] {
			t.Errorf("%s: attribute %q is declared twice or has no name", d.Name, a.Name)
		}
		seen[a.Name] = true
		if a.Default != nil && op.KindOf(a.Default) != a.Kind {
			t.Errorf("%s: attribute %q: got default %v, want %s", d.Name, a.Name, a.Default, a.Kind)
		}
		if a.Needed && a.Default != nil {
			t.Errorf("%s: attribute %q is needed and has a default", d.Name, a.Name)
		}
	}
}

// TestInferTypesChecksTheCall tests the checks of InferTypes before a shape
// rule runs.
func TestInferTypesChecksTheCall(t *testing.T) {
	f32 := func(dims ...int) op.Type { return op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)} }
	tests := []struct {
		name    string
		args    []op.Type
		results int
		attrs   []op.Attr
		regions [][]op.Type
		want    string
	}{
		{name: "relu", results: 1, want: "relu: got 0 operands, want 1"},
		{name: "clip", args: make([]op.Type, 4), results: 1, want: "clip: got 4 operands, want 1 to 3"},
		{name: "sum", results: 1, want: "sum: got 0 operands, want 1 or more"},
		{name: "relu", args: []op.Type{f32(2)}, results: 2, want: "relu: got 2 results, want 1"},
		{name: "add", args: []op.Type{f32(2), {}}, results: 1, want: "add: operand 1 is absent, want a value"},
		{name: "sum", args: []op.Type{f32(2), {}}, results: 1, want: "sum: operand 1 is absent, want a value"},
		{name: "concat", args: []op.Type{f32(2), {}}, results: 1, attrs: []op.Attr{{Name: "axis", Value: int64(0)}}, want: "concat: operand 1 is absent"},
		{name: "max_pool", args: []op.Type{f32(1, 1, 2)}, results: 1, want: `max_pool: attribute "kernel_shape" is missing`},
		{name: "cast", args: []op.Type{f32(2)}, results: 1, attrs: []op.Attr{{Name: "to", Value: int64(1)}}, want: `attribute "to": got int, want dtype`},
		{name: "if", args: []op.Type{{DType: dtype.Bool, Shape: shape.Scalar()}}, results: 1, want: "if: got 0 regions, want 2"},
		{name: "relu", args: []op.Type{f32(2)}, results: 1, regions: make([][]op.Type, 1), want: "relu: got 1 regions, want 0"},
	}
	for _, test := range tests {
		attrs, err := op.NewAttrs(test.attrs...)
		if err != nil {
			t.Fatal(err)
		}
		s := &op.Sig{Def: op.Builtin().Lookup(test.name), Args: test.args, Attrs: attrs, Regions: test.regions, Results: make([]op.Type, test.results)}
		if err := op.InferTypes(s); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q", test.name, err, test.want)
		}
	}
}

// A value whose bytes do not fit its type is no known value.
func TestKnownNeedsTheWholeValue(t *testing.T) {
	data := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for _, test := range []struct {
		typ   op.Type
		known bool
	}{
		{op.Type{DType: dtype.I64, Shape: shape.MustOf(1)}, true},
		{op.Type{DType: dtype.I32, Shape: shape.MustOf(2)}, true},
		{op.Type{DType: dtype.I64, Shape: shape.MustOf(2)}, false},
		{op.Type{DType: dtype.I64}, false},
		{op.Type{DType: dtype.F64, Shape: shape.MustOf(1)}, false},
		{op.Type{}, false},
	} {
		s := &op.Sig{Args: []op.Type{test.typ}, Known: func(int) ([]byte, bool) { return data, true }}
		if v, ok := s.KnownInts(0); ok != test.known {
			t.Errorf("%s: got %v, %t, want %t", test.typ, v, ok, test.known)
		}
	}
	s := &op.Sig{Args: []op.Type{{DType: dtype.I64, Shape: shape.MustOf(0)}}}
	if v, ok := s.KnownInts(0); !ok || len(v) != 0 {
		t.Errorf("got %v, %t for a list without elements, want it known", v, ok)
	}
	if v, ok := s.KnownInts(1); ok {
		t.Errorf("got %v for an operand past the last, want nothing", v)
	}
}

// Eager calls infer types each time: elementwise ones allocate nothing for it.
func TestInferTypesAllocations(t *testing.T) {
	for _, test := range []struct {
		name string
		args []op.Type
		most float64
	}{
		{"relu", []op.Type{f32(1, 64, 56, 56)}, 0},
		{"add", []op.Type{f32(1, 64, 56, 56), f32(1, 64, 56, 56)}, 0},
		{"mul", []op.Type{f32(1, 64, 56, 56), f32(64, 1, 1)}, 0},
		{"where", []op.Type{{DType: dtype.Bool, Shape: shape.MustOf(4, 4)}, f32(4, 4), f32()}, 0},
	} {
		s := &op.Sig{Def: op.Builtin().Lookup(test.name), Args: test.args, Results: make([]op.Type, 1)}
		if n := testing.AllocsPerRun(100, func() {
			if err := op.InferTypes(s); err != nil {
				t.Fatal(err)
			}
			_, _ = s.AliasOf(0, 0)
		}); n > test.most {
			t.Errorf("%s: got %v allocations, want %v", test.name, n, test.most)
		}
	}
}

func TestAttrs(t *testing.T) {
	a, err := op.NewAttrs(op.Attr{Name: "pads", Value: []int64{1, 2}}, op.Attr{Name: "alpha", Value: 0.5}, op.Attr{Name: "mode", Value: "edge"},
		op.Attr{Name: "axis", Value: int64(-1)}, op.Attr{Name: "to", Value: dtype.F16}, op.Attr{Name: "scales", Value: []float64{2}})
	if err != nil {
		t.Fatal(err)
	}
	if a[0].Name != "alpha" || !a.Has("axis") || a.Has("beta") {
		t.Errorf("got %v, want the names sorted", a)
	}
	if a.Int("axis", 7) != -1 || a.Int("alpha", 7) != 7 || a.Float("alpha", 1) != 0.5 || a.Float("x", 1) != 1 || a.Str("mode", "") != "edge" || a.Str("x", "y") != "y" {
		t.Errorf("got other numbers or strings from %v", a)
	}
	if a.DType("to", dtype.F32) != dtype.F16 || a.DType("x", dtype.F32) != dtype.F32 || len(a.Ints("pads")) != 2 || a.Ints("x") != nil || a.Floats("scales")[0] != 2 || a.Floats("pads") != nil {
		t.Errorf("got other types or lists from %v", a)
	}
	b := a.With("axis", int64(0))
	if a.Equal(b) || !b.With("axis", int64(-1)).Equal(a) || a.Int("axis", 7) != -1 {
		t.Errorf("got %v from %v", b, a)
	}
	for _, other := range []op.Attrs{a.With("pads", []int64{1, 3}), a.With("scales", []float64{3}), a.With("names", []string{"x"}), a[1:]} {
		if a.Equal(other) || other.Equal(a) {
			t.Errorf("got %v equal to %v", other, a)
		}
		if !other.Equal(append(op.Attrs(nil), other...)) {
			t.Errorf("got %v unequal to itself", other)
		}
	}
	for want, attrs := range map[string][]op.Attr{
		`attribute "x" is given twice`:            {{Name: "x", Value: 1.0}, {Name: "x", Value: 2.0}},
		`attribute "x": got a int, want int64`:    {{Name: "x", Value: 1}},
		`attribute "x": got a <nil>, want int64,`: {{Name: "x"}},
	} {
		if _, err := op.NewAttrs(attrs...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func TestRegistry(t *testing.T) {
	infer := func(*op.Sig) error { return nil }
	r, err := op.Builtin().With(&op.Def{Name: "acme.x", ONNX: "acme::X", Infer: infer})
	if err != nil {
		t.Fatal(err)
	}
	if r.Lookup("acme.x") == nil || r.LookupONNX("acme::X") == nil || r.Lookup("relu") == nil || op.Builtin().Lookup("acme.x") != nil {
		t.Error("got an operator missing, or one in the built-in table")
	}
	for want, def := range map[string]*op.Def{
		"registry: an operator has no name":                                  {Infer: infer},
		`registry: operator "y" has no shape rule`:                           {Name: "y"},
		`registry: operator "relu" is declared twice`:                        {Name: "relu", Infer: infer},
		`registry: operators "relu" and "acme.r" both import ONNX "Relu"`:    {Name: "acme.r", ONNX: "Relu", Infer: infer},
		`registry: operators "acme.x" and "acme.z" both import ONNX "acme::`: {Name: "acme.z", ONNX: "acme::X", Infer: infer},
	} {
		if _, err := r.With(def); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	if _, err := r.With(nil); err == nil {
		t.Error("got no error for a nil definition")
	}
}

// An operator that declares nothing may alias everything and is never put in
// place; an absent operand aliases nothing.
func TestUndeclaredAlias(t *testing.T) {
	def := &op.Def{Name: "acme.dark", MinArgs: 1, MaxArgs: 2}
	s := &op.Sig{Def: def, Args: []op.Type{f32(2), {}}, Results: []op.Type{f32(2)}}
	if kind, _ := s.AliasOf(0, 0); kind != 0 || !s.MayAlias(0, 0) {
		t.Errorf("got %s and may alias %t, want fresh and true", kind, s.MayAlias(0, 0))
	}
	def.Alias = op.Aliases(op.Rule{Arg: op.EveryArg, Result: op.EveryResult, Kind: op.View})
	if kind, _ := s.AliasOf(0, 0); kind != op.View || !s.MayAlias(0, 0) {
		t.Errorf("got %s and may alias %t, want view and true", kind, s.MayAlias(0, 0))
	}
	if kind, _ := s.AliasOf(1, 0); kind != 0 {
		t.Errorf("got %s for an absent operand, want fresh", kind)
	}
	def.Alias = op.Fresh()
	if s.MayAlias(0, 0) {
		t.Error("got an alias of a fresh result")
	}
}

func TestKnownNumbers(t *testing.T) {
	tests := []struct {
		dt   dtype.DType
		data []byte
		ints []int64
		nums []float64
	}{
		{dtype.I8, []byte{0xff, 2}, []int64{-1, 2}, []float64{-1, 2}},
		{dtype.U8, []byte{0xff, 2}, []int64{255, 2}, []float64{255, 2}},
		{dtype.I16, []byte{0xfe, 0xff}, []int64{-2}, []float64{-2}},
		{dtype.U16, []byte{0xfe, 0xff}, []int64{65534}, []float64{65534}},
		{dtype.I32, []byte{0xfd, 0xff, 0xff, 0xff}, []int64{-3}, []float64{-3}},
		{dtype.U32, []byte{0xff, 0xff, 0xff, 0xff}, []int64{1<<32 - 1}, []float64{1<<32 - 1}},
		{dtype.U64, []byte{7, 0, 0, 0, 0, 0, 0, 0}, []int64{7}, []float64{7}},
		{dtype.U64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, nil, nil},
		{dtype.F32, []byte{0, 0, 0xc0, 0x3f}, nil, []float64{1.5}},
		{dtype.F16, []byte{0, 0x3e}, nil, []float64{1.5}},
		{dtype.BF16, []byte{0xc0, 0x3f}, nil, []float64{1.5}},
		{dtype.F64, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, nil, []float64{1.5}},
		{dtype.Bool, []byte{1}, nil, nil},
	}
	for _, test := range tests {
		s := &op.Sig{
			Args:  []op.Type{{DType: test.dt, Shape: shape.MustOf(len(test.data) / test.dt.Size())}},
			Known: func(int) ([]byte, bool) { return test.data, true },
		}
		if got, ok := s.KnownInts(0); ok != (test.ints != nil) || ok && !reflect.DeepEqual(got, test.ints) {
			t.Errorf("%s % x: got ints %v, %t, want %v", test.dt, test.data, got, ok, test.ints)
		}
		if got, ok := s.KnownFloats(0); ok != (test.nums != nil) || ok && !reflect.DeepEqual(got, test.nums) {
			t.Errorf("%s % x: got floats %v, %t, want %v", test.dt, test.data, got, ok, test.nums)
		}
	}
}
