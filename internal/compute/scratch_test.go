package compute

import (
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// sized is a call whose sizes are drawn: a dimension below 0 is one of the
// open sizes, by number from -1 on.
type sized struct {
	name     string
	attrs    op.Attrs
	dt       dtype.DType
	args     [][]int
	constant bool // operand 1 is a constant: its dimensions have sizes
	most     []int
	reached  bool // some smaller size takes as much as the bound
}

var sizedCalls = []sized{
	{"matmul", nil, dtype.F32, [][]int{{-1, -2, -3}, {-3, -4}}, false, []int{9, 400, 700, 300}, true},
	{"matmul", nil, dtype.F32, [][]int{{-1, -2, 96}, {96, 70}}, true, []int{9, 400}, true},
	{"matmul", nil, dtype.F32, [][]int{{-1, -2, 1024}, {1024, 70}}, true, []int{9, 400}, true},
	{"matmul", nil, dtype.F32, [][]int{{-1, -2, -3}, {-1, -3, 1}}, false, []int{5, 40, 2048}, false},
	{"fused_matmul", attrs("transB", 1), dtype.F32, [][]int{{-1, -2}, {-3, -2}}, false, []int{300, 3000, 80}, true},
	{"gemm", attrs("transA", 1, "alpha", 0.5), dtype.F32, [][]int{{-2, -1}, {-2, -3}}, false, []int{1000, 256, 900}, true},
	{"gemm", attrs("alpha", 2.0), dtype.F32, [][]int{{-1, -2}, {-2, -3}}, false, []int{1, 20000, 50}, true},
	{"softmax", attrs("axis", -1), dtype.F32, [][]int{{-1, -2}}, false, []int{4000, 9000}, true},
	{"softmax", attrs("axis", 1), dtype.F32, [][]int{{-1, -2, -3}}, false, []int{90, 700, 60}, true},
	{"layer_normalization", attrs("axis", -1), dtype.F32, [][]int{{-1, 300}, {300}}, true, []int{60000}, true},
	{"layer_normalization", attrs("axis", -1), dtype.F32, [][]int{{-1, -2}, {-2}}, false, []int{6000, 5000}, false},
	{"add", nil, dtype.F32, [][]int{{-1, -2}, {-2}}, false, []int{6000, 5000}, false},
	{"add", nil, dtype.F16, [][]int{{-1, -2}, {-2}}, false, []int{600, 50}, true},
	{"exp", nil, dtype.F32, [][]int{{-1, -2}}, false, []int{6000, 5000}, true},
	{"exp", nil, dtype.F16, [][]int{{-1, -2}}, false, []int{600, 500}, true},
	{"less", nil, dtype.F16, [][]int{{-1, -2}, {-2}}, false, []int{600, 50}, true},
	{"transpose", nil, dtype.F32, [][]int{{-1, -2, -3}}, false, []int{60, 50, 70}, true},
	{"concat", attrs("axis", 0), dtype.F32, [][]int{{-1, -2}, {-3, -2}}, false, []int{60, 50, 70}, true},
	{"cast", attrs("to", dtype.F64), dtype.F16, [][]int{{-1, -2}}, false, []int{60, 50}, true},
}

// of returns the call for sizes, nil where its shape rule refuses them.
func (s *sized) of(sizes []int) *op.Call {
	c := &op.Call{Sig: &op.Sig{Def: op.Builtin().Lookup(s.name), Attrs: s.attrs, Results: make([]op.Type, 1)}}
	c.Sig.Known = func(int) ([]byte, bool) { return nil, false }
	put := func(list *[]op.Arg, t op.Type) {
		*list = append(*list, op.Arg{Type: t, Layout: shape.RowMajor(t.Shape)})
	}
	for _, dims := range s.args {
		now := make([]int, len(dims))
		for i, n := range dims {
			if now[i] = n; n < 0 {
				now[i] = sizes[-n-1]
			}
		}
		t := op.Type{DType: s.dt, Shape: shape.MustOf(now...)}
		c.Sig.Args = append(c.Sig.Args, t)
		put(&c.In, t)
	}
	if op.InferTypes(c.Sig) != nil {
		return nil
	}
	put(&c.Out, c.Sig.Results[0])
	return c
}

// TestMostScratch compares the bounds of scratch with the scratch of calls of
// smaller sizes.
func TestMostScratch(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, s := range sizedCalls {
		reached := false
		fixed := func(arg, axis int) bool { return s.args[arg][axis] >= 0 }
		constants := Constants{Is: func(i int) bool { return s.constant && i == 1 }}
		for range 12 {
			most := make([]int, len(s.most))
			for i, n := range s.most {
				if most[i] = 1 + random.IntN(n); random.IntN(3) > 0 {
					most[i] = n
				}
			}
			task, err := BindConstants(s.of(most), constants)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			bound, ok := task.MostScratch(fixed)
			if !ok {
				t.Fatalf("%s: got no bound, want one", s.name)
			}
			for range 200 {
				sizes := make([]int, len(most))
				for i, n := range most {
					if sizes[i] = 1 + random.IntN(n); random.IntN(4) == 0 {
						sizes[i] = min(n, []int{1, 2, 4, 128, 256, 384, 1024, n}[random.IntN(8)])
					}
				}
				c := s.of(sizes)
				if c == nil {
					continue
				}
				small, err := BindConstants(c, constants)
				if err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				if small.Scratch > bound {
					t.Fatalf("%s of %v: got %d bytes of scratch, want at most the bound for %v, %d", s.name, sizes, small.Scratch, most, bound)
				}
				reached = reached || small.Scratch == bound
			}
		}
		if s.reached && !reached {
			t.Errorf("%s of %v: got no size that takes as much scratch as the bound, want some", s.name, s.args)
		}
	}
}

// The operators that take no scratch are those of the table; op/optest compares
// what is said of them, at many sizes.
func TestTakesNone(t *testing.T) {
	for name := range takesNone {
		if op.Builtin().Lookup(name) == nil {
			t.Errorf("got %q, want a builtin operator", name)
		}
	}
}
