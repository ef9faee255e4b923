package hostile_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
)

// odd are files that are right but unusual: they run.
var odd = map[string]func(g *onnxtest.Graph){
	"no inputs": func(g *onnxtest.Graph) {
		g.Floats("w", 1, 2)
		g.Node("Relu", []string{"w"}, []string{"y"})
		g.Output("y")
	},
	"no nodes": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 3)
		g.Output("x")
	},
	"an output that is a weight": func(g *onnxtest.Graph) {
		g.Floats("w", 1, 2)
		g.Output("w")
	},
	"unused inputs": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 3)
		g.Input("unused", onnxtest.I64, "n", 2)
		g.Node("Relu", []string{"x"}, []string{"y"})
		g.Output("y")
	},
	"an output that is also read, and an input": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 3)
		g.Node("Relu", []string{"x"}, []string{"r"})
		g.Node("Neg", []string{"r"}, []string{"y"})
		g.Output("r")
		g.Output("x")
		g.Output("y")
	},
	"one value as many outputs": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 3)
		g.Node("Relu", []string{"x"}, []string{"r"})
		for i := range 4 {
			g.Node("Identity", []string{"r"}, []string{fmt.Sprint("y", i)})
			g.Output(fmt.Sprint("y", i))
		}
		g.Output("r")
	},
	"one operand twice": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 3)
		g.Node("Relu", []string{"x"}, []string{"r"})
		g.Node("Add", []string{"r", "r"}, []string{"s"})
		g.Node("Concat", []string{"s", "s", "s"}, []string{"y"}, onnxtest.Int("axis", 0))
		g.Output("y")
	},
	"scalars": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32)
		g.Input("v", onnxtest.F32, 5)
		g.Node("Relu", []string{"x"}, []string{"r"})
		g.Node("Add", []string{"r", "v"}, []string{"a"})
		g.Node("ReduceSum", []string{"a"}, []string{"s"}, onnxtest.Int("keepdims", 0))
		g.Node("Mul", []string{"s", "x"}, []string{"m"})
		g.Node("Shape", []string{"m"}, []string{"shape"})
		g.Node("Exp", []string{"m"}, []string{"y"})
		g.Output("y")
		g.Output("shape")
	},
	"high rank": func(g *onnxtest.Graph) {
		dims := make([]any, 32)
		perm := make([]int64, 32)
		for i := range dims {
			dims[i], perm[i] = 1, int64(31-i)
		}
		dims[3], dims[30] = 2, 3
		g.Input("x", onnxtest.F32, dims...)
		g.Node("Relu", []string{"x"}, []string{"r"})
		g.Node("Transpose", []string{"r"}, []string{"t"}, onnxtest.Ints("perm", perm...))
		g.Node("Add", []string{"t", "t"}, []string{"a"})
		g.Node("ReduceMean", []string{"a"}, []string{"y"}, onnxtest.Int("keepdims", 1))
		g.Output("y")
	},
	"a high rank that broadcasts": func(g *onnxtest.Graph) {
		a, b := make([]any, 16), make([]any, 16)
		for i := range a {
			a[i], b[i] = 1+i%2, 2-i%2
		}
		g.Input("a", onnxtest.F32, a...)
		g.Input("b", onnxtest.F32, b...)
		g.Node("Add", []string{"a", "b"}, []string{"y"})
		g.Output("y")
	},
	"an if without operands": func(g *onnxtest.Graph) {
		g.Input("c", onnxtest.Bool)
		g.Floats("w", 1, 2)
		var then, otherwise onnxtest.Graph
		then.Output("w")
		otherwise.Node("Neg", []string{"w"}, []string{"n"})
		otherwise.Output("n")
		g.Node("If", []string{"c"}, []string{"y"}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &otherwise))
		g.Output("y")
	},
	"an if whose branches give one value": func(g *onnxtest.Graph) {
		g.Input("c", onnxtest.Bool)
		g.Input("x", onnxtest.F32, 4)
		g.Node("Relu", []string{"x"}, []string{"r"})
		var then, otherwise onnxtest.Graph
		then.Node("Identity", []string{"r"}, []string{"t"})
		then.Output("t")
		otherwise.Node("Identity", []string{"r"}, []string{"e"})
		otherwise.Output("e")
		g.Node("If", []string{"c"}, []string{"y"}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &otherwise))
		g.Node("Neg", []string{"r"}, []string{"z"})
		g.Output("y")
		g.Output("z")
	},
	"an if whose branch gives one value twice": func(g *onnxtest.Graph) {
		g.Input("c", onnxtest.Bool)
		g.Input("x", onnxtest.F32, 4)
		var then, otherwise onnxtest.Graph
		then.Node("Relu", []string{"x"}, []string{"t"})
		then.Output("t")
		then.Node("Identity", []string{"t"}, []string{"t2"})
		then.Output("t2")
		otherwise.Node("Neg", []string{"x"}, []string{"e"})
		otherwise.Output("e")
		otherwise.Output("x")
		g.Node("If", []string{"c"}, []string{"y", "z"}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &otherwise))
		g.Output("y")
		g.Output("z")
	},
	"no elements": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 0, 3)
		g.Input("m", onnxtest.F32, 3, 4)
		g.Input("image", onnxtest.F32, 0, 2, 5, 5)
		g.Weight("kernel", onnxtest.F32, make([]byte, 4*2*2*3*3), 2, 2, 3, 3)
		g.Floats("none")
		g.Ints("axes", 1)
		g.Ints("empty", 0, 0)
		g.Node("Relu", []string{"x"}, []string{"r"})
		g.Node("MatMul", []string{"r", "m"}, []string{"p"})
		g.Node("Softmax", []string{"p"}, []string{"soft"})
		g.Node("Transpose", []string{"soft"}, []string{"t"})
		g.Node("MatMul", []string{"t", "r"}, []string{"outer"}) // [4,3] from nothing: zeros
		g.Node("Concat", []string{"r", "x"}, []string{"both"}, onnxtest.Int("axis", 0))
		g.Node("ReduceSum", []string{"both", "axes"}, []string{"sum"})
		g.Node("ReduceSum", []string{"both"}, []string{"all"})
		g.Node("Reshape", []string{"both", "empty"}, []string{"flat"}, onnxtest.Int("allowzero", 1))
		g.Node("Conv", []string{"image", "kernel"}, []string{"conv"})
		g.Node("MaxPool", []string{"conv"}, []string{"pool"}, onnxtest.Ints("kernel_shape", 2, 2))
		g.Node("GlobalAveragePool", []string{"pool"}, []string{"mean"})
		g.Node("Exp", []string{"none"}, []string{"e"})
		g.Node("Where", func() []string { g.Input("cond", onnxtest.Bool, 0, 3); return []string{"cond", "x", "r"} }(), []string{"where"})
		for _, y := range []string{"p", "t", "outer", "sum", "all", "flat", "mean", "e", "where"} {
			g.Output(y)
		}
	},
	"no elements, one after the other": func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 0)
		g.Node("Relu", []string{"x"}, []string{"a"})
		g.Node("Neg", []string{"a"}, []string{"b"})
		g.Node("Identity", []string{"b"}, []string{"c"})
		g.Node("Split", []string{"c"}, []string{"d", "e"}, onnxtest.Int("num_outputs", 2))
		for _, y := range []string{"a", "b", "c", "d", "e", "x"} {
			g.Output(y)
		}
	},
}

// strange are names that the text of a program has to quote.
var strange = []string{" ", "\n", `"`, `\`, "%", "%x", "a b", "é", "\u2028", "x:0", "y#2", "0", "-1", "@", "/", "//", "{}", "func", "true", "\x00", "\u202e", "日本", strings.Repeat("n", 5000)}

func init() {
	odd["strange names"] = func(g *onnxtest.Graph) {
		last := "x"
		g.Input("x", onnxtest.F32, "a\nb", 2)
		for _, name := range strange {
			g.Node("Relu", []string{last}, []string{name})
			last = name
		}
		g.Output(last)
	}
	odd["strange names of inputs and outputs"] = func(g *onnxtest.Graph) {
		for _, name := range strange {
			g.Input(name, onnxtest.F32, name, 2)
			g.Node("Relu", []string{name}, []string{name + "'"})
			g.Output(name + "'")
		}
	}
}

func TestOddFiles(t *testing.T) {
	memorytest.Check(t)
	for name, build := range odd {
		t.Run(name, func(t *testing.T) {
			var g onnxtest.Graph
			build(&g)
			if o := try(t, name, g.File()); o.stage != "done" {
				t.Errorf("got %s: %.500v, want a run", o.stage, o.err)
				return
			}
			m := modeltest.LoadBytes(t, g.File())
			again, err := ir.Parse(m.Program().String(), op.Builtin())
			if err != nil {
				t.Fatalf("the program's text is not read back: %v\n%s", err, m.Program())
			}
			if got, want := again.String(), m.Program().String(); got != want {
				t.Errorf("got the text\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestDamagedOddFiles damages the unusual files too: they have operators and
// shapes that the models lack.
func TestDamagedOddFiles(t *testing.T) {
	memorytest.Check(t)
	limited(t, hostileLimit)
	n := max(*flips, 60)
	for _, name := range slices.Sorted(maps.Keys(odd)) {
		var g onnxtest.Graph
		odd[name](&g)
		original := g.File()
		parts, rnd := dissect(original), rand.New(rand.NewPCG(2, uint64(len(original))))
		for range n {
			data, what := parts.damage(original, rnd)
			try(t, name+": "+what, data)
		}
	}
}

// doubled concatenates a value with itself n times: 2^n times its bytes.
func doubled(g *onnxtest.Graph, first string, n int) {
	last := first
	for i := range n {
		next := fmt.Sprint("double", i)
		g.Node("Concat", []string{last, last}, []string{next}, onnxtest.Int("axis", 0))
		last = next
	}
	g.Node("Neg", []string{last}, []string{"y"})
	g.Output("y")
}

// absurdity is a file that declares more than there is.
type absurdity struct {
	build func(g *onnxtest.Graph)
	stage string // where its way ends
	kind  error  // nil: any, or a plan that is too large to be run
}

// absurd are files that declare more than there is, and what stops them.
var absurd = map[string]absurdity{
	"an input of 2^52 bytes": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 1<<25, 1<<25)
		g.Node("Relu", []string{"x"}, []string{"y"})
		g.Output("y")
	}, "plan", nil},
	"an input of 2^66 bytes": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 1<<32, 1<<32)
		g.Node("Relu", []string{"x"}, []string{"y"})
		g.Output("y")
	}, "load", tenure.ErrShape},
	"doubled to 2^42 bytes": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 1024)
		doubled(g, "x", 30)
	}, "plan", nil},
	"doubled to 2^72 bytes": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 1024)
		doubled(g, "x", 60)
	}, "load", tenure.ErrShape},
	"constants doubled to 2^40 bytes": {func(g *onnxtest.Graph) {
		g.Floats("w", 1)
		doubled(g, "w", 38)
	}, "plan", nil},
	"values of 2^60 bytes, many": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 1<<29, 1<<29)
		for i := range 40 {
			g.Floats(fmt.Sprint("w", i), float32(i))
			g.Node("Add", []string{"x", fmt.Sprint("w", i)}, []string{fmt.Sprint("e", i)})
		}
		g.Node("Sum", names("e", 40), []string{"y"})
		g.Output("y")
	}, "plan", tenure.ErrLimit},
	"a product of constants that takes a minute": {func(g *onnxtest.Graph) {
		g.Ints("shape", 1<<12, 1<<12)
		g.Node("ConstantOfShape", []string{"shape"}, []string{"c"})
		g.Node("MatMul", []string{"c", "c"}, []string{"p"})
		g.Node("ReduceSum", []string{"p"}, []string{"y"})
		g.Output("y")
	}, "plan", nil},
	"a constant of 2^40 bytes": {func(g *onnxtest.Graph) {
		g.Ints("shape", 1<<19, 1<<19)
		g.Node("ConstantOfShape", []string{"shape"}, []string{"c"})
		g.Node("Neg", []string{"c"}, []string{"y"})
		g.Output("y")
	}, "plan", nil},
	"a rank that is too high": {func(g *onnxtest.Graph) {
		dims := make([]any, 100)
		for i := range dims {
			dims[i] = 1
		}
		g.Input("x", onnxtest.F32, dims...)
		g.Node("Relu", []string{"x"}, []string{"y"})
		g.Output("y")
	}, "load", tenure.ErrCorrupt},
	"an output twice": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 2)
		g.Node("Relu", []string{"x"}, []string{"y"})
		g.Output("y")
		g.Output("y")
	}, "done", nil},
	"no outputs": {func(g *onnxtest.Graph) {
		g.Input("x", onnxtest.F32, 2)
		g.Node("Relu", []string{"x"}, []string{"y"})
	}, "load", tenure.ErrCorrupt},
	"nothing": {func(*onnxtest.Graph) {}, "load", tenure.ErrCorrupt},
}

func init() {
	// One dimension or window that no machine holds, for what binds ahead of a
	// run.
	const long = 1 << 40
	for name, build := range map[string]func(g *onnxtest.Graph){
		"resize": func(g *onnxtest.Graph) {
			g.Floats("scales", 1, 1, 2)
			g.Node("Resize", []string{"x", "", "scales"}, []string{"y"}, onnxtest.Text("mode", "linear"))
		},
		"conv": func(g *onnxtest.Graph) {
			g.Floats("k", 1, 2, 3)
			g.Ints("kshape", 1, 1, 3)
			g.Node("Reshape", []string{"k", "kshape"}, []string{"kernel"})
			g.Node("Conv", []string{"x", "kernel"}, []string{"y"})
		},
		"convtranspose": func(g *onnxtest.Graph) {
			g.Floats("k", 1, 2, 3)
			g.Ints("kshape", 1, 1, 3)
			g.Node("Reshape", []string{"k", "kshape"}, []string{"kernel"})
			g.Node("ConvTranspose", []string{"x", "kernel"}, []string{"y"}, onnxtest.Ints("strides", 2))
		},
		"pool": func(g *onnxtest.Graph) {
			g.Node("MaxPool", []string{"x"}, []string{"y"}, onnxtest.Ints("kernel_shape", 1<<39))
		},
		"average": func(g *onnxtest.Graph) {
			g.Node("AveragePool", []string{"x"}, []string{"y"}, onnxtest.Ints("kernel_shape", 1<<39), onnxtest.Ints("pads", 1<<38, 1<<38))
		},
		"pad": func(g *onnxtest.Graph) {
			g.Ints("pads", 0, 0, 1<<39, 0, 0, 1<<39)
			g.Node("Pad", []string{"x", "pads"}, []string{"y"}, onnxtest.Text("mode", "reflect"))
		},
		"slice": func(g *onnxtest.Graph) {
			g.Ints("start", -1)
			g.Ints("end", -1<<62)
			g.Ints("axis", 2)
			g.Ints("step", -2)
			g.Node("Slice", []string{"x", "start", "end", "axis", "step"}, []string{"y"})
		},
		"expand": func(g *onnxtest.Graph) {
			g.Ints("to", 1<<16, 1, 1)
			g.Node("Expand", []string{"x", "to"}, []string{"y"})
		},
		"tile": func(g *onnxtest.Graph) {
			g.Ints("repeats", 1, 1<<15, 2)
			g.Node("Tile", []string{"x", "repeats"}, []string{"y"})
		},
		"gather": func(g *onnxtest.Graph) {
			g.Ints("i", 5, 1<<39)
			g.Node("Gather", []string{"x", "i"}, []string{"y"}, onnxtest.Int("axis", 2))
		},
		"cumsum": func(g *onnxtest.Graph) {
			g.Ints("axis", 2)
			g.Node("CumSum", []string{"x", "axis"}, []string{"y"})
		},
		"softmax":   func(g *onnxtest.Graph) { g.Node("Softmax", []string{"x"}, []string{"y"}, onnxtest.Int("axis", 2)) },
		"reduce":    func(g *onnxtest.Graph) { g.Node("ReduceMean", []string{"x"}, []string{"y"}) },
		"transpose": func(g *onnxtest.Graph) { g.Node("Transpose", []string{"x"}, []string{"y"}) },
		"split": func(g *onnxtest.Graph) {
			g.Node("Split", []string{"x"}, []string{"y", "z"}, onnxtest.Int("axis", 2), onnxtest.Int("num_outputs", 2))
		},
		"matmul": func(g *onnxtest.Graph) {
			g.Node("MatMul", []string{"x", "t"}, []string{"y"})
			g.Input("t", onnxtest.F32, long, 4)
		},
		"gemm": func(g *onnxtest.Graph) {
			g.Input("a", onnxtest.F32, 4, long)
			g.Input("b", onnxtest.F32, 8, long)
			g.Node("Gemm", []string{"a", "b"}, []string{"y"}, onnxtest.Int("transB", 1))
		},
		"argmax": func(g *onnxtest.Graph) { g.Node("ArgMax", []string{"x"}, []string{"y"}, onnxtest.Int("axis", 2)) },
		"instancenorm": func(g *onnxtest.Graph) {
			g.Floats("s", 1)
			g.Node("InstanceNormalization", []string{"x", "s", "s"}, []string{"y"})
		},
		"range": func(g *onnxtest.Graph) {
			g.Weight("from", onnxtest.I64, make([]byte, 8))
			g.Weight("limit", onnxtest.I64, []byte{0, 0, 0, 0, 0, 1, 0, 0})
			g.Weight("step", onnxtest.I64, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			g.Node("Range", []string{"from", "limit", "step"}, []string{"y"})
		},
		"onehot": func(g *onnxtest.Graph) {
			g.Weight("depth", onnxtest.I64, []byte{0, 0, 0, 0, 0, 1, 0, 0})
			g.Floats("values", 0, 1)
			g.Ints("i", 1, 2, 3)
			g.Node("OneHot", []string{"i", "depth", "values"}, []string{"y"})
		},
	} {
		absurd["a long dimension in "+name] = absurdity{func(g *onnxtest.Graph) {
			g.Input("x", onnxtest.F32, 1, 1, long)
			build(g)
			g.Output("y")
		}, "plan", nil}
	}
}

// TestAbsurdFiles holds that sizes are found out before anything is allocated
// for them: "plan" stands for a plan that says so, or an error.
func TestAbsurdFiles(t *testing.T) {
	memorytest.Check(t)
	for name, c := range absurd {
		t.Run(name, func(t *testing.T) {
			var g onnxtest.Graph
			c.build(&g)
			memory.ResetPeak()
			limited(t, 512<<20)
			o := try(t, name, g.File())
			// Inputs that no memory holds are as good an end as a plan.
			if o.stage != c.stage && !(c.stage == "plan" && o.stage == "run" && errors.Is(o.err, tenure.ErrLimit)) {
				t.Errorf("got %s: %v, want it to end at %s", o.stage, o.err, c.stage)
			}
			if c.kind != nil && !errors.Is(o.err, c.kind) {
				t.Errorf("got the error %v, want %v", o.err, c.kind)
			}
			if taken := memory.Stats().Total.Peak; taken > 128<<20 || o.heap > 128<<20 {
				t.Errorf("got %d bytes of buffers and %d of the heap taken, want at most 128 MiB", taken, o.heap)
			}
		})
	}
}

// TestPlanTooLarge runs what has a plan, but no memory.
func TestPlanTooLarge(t *testing.T) {
	memorytest.Check(t)
	limited(t, 32<<20)
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n")
	doubled(&g, "x", 20)
	s := modeltest.Session(t, modeltest.LoadBytes(t, g.File()))
	x := modeltest.Of(t, modeltest.Ramp(16), 16)
	for range 2 {
		if out, err := s.Run(t.Context(), tenure.Inputs{"x": x}); !errors.Is(err, tenure.ErrLimit) {
			out.Release()
			t.Fatalf("got %v, want %v", err, tenure.ErrLimit)
		}
	}
	small := modeltest.Of(t, modeltest.Ramp(1), 1)
	out, err := s.Run(t.Context(), tenure.Inputs{"x": small})
	if err != nil {
		t.Fatalf("a smaller input afterwards: %v", err)
	}
	out.Release()
}
