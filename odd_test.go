package tenure_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
)

// odd are files that are right but unusual: they run.
var odd = map[string]func(g *graph){
	"no inputs": func(g *graph) {
		g.floats("w", 1, 2)
		g.node("Relu", one("w"), one("y"))
		g.output("y")
	},
	"no nodes": func(g *graph) {
		g.input("x", f32Type, 3)
		g.output("x")
	},
	"an output that is a weight": func(g *graph) {
		g.floats("w", 1, 2)
		g.output("w")
	},
	"unused inputs": func(g *graph) {
		g.input("x", f32Type, 3)
		g.input("unused", i64Type, "n", 2)
		g.node("Relu", one("x"), one("y"))
		g.output("y")
	},
	"an output that is also read, and an input": func(g *graph) {
		g.input("x", f32Type, 3)
		g.node("Relu", one("x"), one("r"))
		g.node("Neg", one("r"), one("y"))
		g.output("r")
		g.output("x")
		g.output("y")
	},
	"one value as many outputs": func(g *graph) {
		g.input("x", f32Type, 3)
		g.node("Relu", one("x"), one("r"))
		for i := range 4 {
			g.node("Identity", one("r"), one(fmt.Sprint("y", i)))
			g.output(fmt.Sprint("y", i))
		}
		g.output("r")
	},
	"one operand twice": func(g *graph) {
		g.input("x", f32Type, 3)
		g.node("Relu", one("x"), one("r"))
		g.node("Add", []string{"r", "r"}, one("s"))
		g.node("Concat", []string{"s", "s", "s"}, one("y"), attrInt("axis", 0))
		g.output("y")
	},
	"scalars": func(g *graph) {
		g.input("x", f32Type)
		g.input("v", f32Type, 5)
		g.node("Relu", one("x"), one("r"))
		g.node("Add", []string{"r", "v"}, one("a"))
		g.node("ReduceSum", one("a"), one("s"), attrInt("keepdims", 0))
		g.node("Mul", []string{"s", "x"}, one("m"))
		g.node("Shape", one("m"), one("shape"))
		g.node("Exp", one("m"), one("y"))
		g.output("y")
		g.output("shape")
	},
	"high rank": func(g *graph) {
		dims := make([]any, 32)
		perm := make([]int64, 32)
		for i := range dims {
			dims[i], perm[i] = 1, int64(31-i)
		}
		dims[3], dims[30] = 2, 3
		g.input("x", f32Type, dims...)
		g.node("Relu", one("x"), one("r"))
		g.node("Transpose", one("r"), one("t"), attrInts("perm", perm...))
		g.node("Add", []string{"t", "t"}, one("a"))
		g.node("ReduceMean", one("a"), one("y"), attrInt("keepdims", 1))
		g.output("y")
	},
	"a high rank that broadcasts": func(g *graph) {
		a, b := make([]any, 16), make([]any, 16)
		for i := range a {
			a[i], b[i] = 1+i%2, 2-i%2
		}
		g.input("a", f32Type, a...)
		g.input("b", f32Type, b...)
		g.node("Add", []string{"a", "b"}, one("y"))
		g.output("y")
	},
	"an if without operands": func(g *graph) {
		g.input("c", boolType)
		g.floats("w", 1, 2)
		var then, otherwise graph
		then.output("w")
		otherwise.node("Neg", one("w"), one("n"))
		otherwise.output("n")
		g.node("If", one("c"), one("y"), attrGraph("then_branch", &then), attrGraph("else_branch", &otherwise))
		g.output("y")
	},
	"an if whose branches give one value": func(g *graph) {
		g.input("c", boolType)
		g.input("x", f32Type, 4)
		g.node("Relu", one("x"), one("r"))
		var then, otherwise graph
		then.node("Identity", one("r"), one("t"))
		then.output("t")
		otherwise.node("Identity", one("r"), one("e"))
		otherwise.output("e")
		g.node("If", one("c"), one("y"), attrGraph("then_branch", &then), attrGraph("else_branch", &otherwise))
		g.node("Neg", one("r"), one("z"))
		g.output("y")
		g.output("z")
	},
	"an if whose branch gives one value twice": func(g *graph) {
		g.input("c", boolType)
		g.input("x", f32Type, 4)
		var then, otherwise graph
		then.node("Relu", one("x"), one("t"))
		then.output("t")
		then.node("Identity", one("t"), one("t2"))
		then.output("t2")
		otherwise.node("Neg", one("x"), one("e"))
		otherwise.output("e")
		otherwise.output("x")
		g.node("If", one("c"), []string{"y", "z"}, attrGraph("then_branch", &then), attrGraph("else_branch", &otherwise))
		g.output("y")
		g.output("z")
	},
	"no elements": func(g *graph) {
		g.input("x", f32Type, 0, 3)
		g.input("m", f32Type, 3, 4)
		g.input("image", f32Type, 0, 2, 5, 5)
		g.weight("kernel", f32Type, make([]byte, 4*2*2*3*3), 2, 2, 3, 3)
		g.floats("none")
		g.ints("axes", 1)
		g.ints("empty", 0, 0)
		one := one
		g.node("Relu", one("x"), one("r"))
		g.node("MatMul", []string{"r", "m"}, one("p"))
		g.node("Softmax", one("p"), one("soft"))
		g.node("Transpose", one("soft"), one("t"))
		g.node("MatMul", []string{"t", "r"}, one("outer")) // [4,3] from nothing: zeros
		g.node("Concat", []string{"r", "x"}, one("both"), attrInt("axis", 0))
		g.node("ReduceSum", []string{"both", "axes"}, one("sum"))
		g.node("ReduceSum", one("both"), one("all"))
		g.node("Reshape", []string{"both", "empty"}, one("flat"), attrInt("allowzero", 1))
		g.node("Conv", []string{"image", "kernel"}, one("conv"))
		g.node("MaxPool", one("conv"), one("pool"), attrInts("kernel_shape", 2, 2))
		g.node("GlobalAveragePool", one("pool"), one("mean"))
		g.node("Exp", one("none"), one("e"))
		g.node("Where", func() []string { g.input("cond", boolType, 0, 3); return []string{"cond", "x", "r"} }(), one("where"))
		for _, y := range []string{"p", "t", "outer", "sum", "all", "flat", "mean", "e", "where"} {
			g.output(y)
		}
	},
	"no elements, one after the other": func(g *graph) {
		g.input("x", f32Type, 0)
		g.node("Relu", one("x"), one("a"))
		g.node("Neg", one("a"), one("b"))
		g.node("Identity", one("b"), one("c"))
		g.node("Split", one("c"), []string{"d", "e"}, attrInt("num_outputs", 2))
		for _, y := range []string{"a", "b", "c", "d", "e", "x"} {
			g.output(y)
		}
	},
}

// strange are names that the text of a program has to quote.
var strange = []string{" ", "\n", `"`, `\`, "%", "%x", "a b", "é", "\u2028", "x:0", "y#2", "0", "-1", "@", "/", "//", "{}", "func", "true", "\x00", "\u202e", "日本", strings.Repeat("n", 5000)}

func init() {
	odd["strange names"] = func(g *graph) {
		last := "x"
		g.input("x", f32Type, "a\nb", 2)
		for _, name := range strange {
			g.node("Relu", one(last), one(name))
			last = name
		}
		g.output(last)
	}
	odd["strange names of inputs and outputs"] = func(g *graph) {
		for _, name := range strange {
			g.input(name, f32Type, name, 2)
			g.node("Relu", one(name), one(name+"'"))
			g.output(name + "'")
		}
	}
}

func TestOddFiles(t *testing.T) {
	memorytest.Check(t)
	for name, build := range odd {
		t.Run(name, func(t *testing.T) {
			var g graph
			build(&g)
			if o := try(t, name, g.file()); o.stage != "done" {
				t.Errorf("got %s: %.500v, want a run", o.stage, o.err)
				return
			}
			m := loadBytes(t, g.file())
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
		var g graph
		odd[name](&g)
		original := g.file()
		parts, rnd := dissect(original), rand.New(rand.NewPCG(2, uint64(len(original))))
		for range n {
			data, what := parts.damage(original, rnd)
			try(t, name+": "+what, data)
		}
	}
}

// doubled concatenates a value with itself n times: 2^n times its bytes.
func doubled(g *graph, first string, n int) {
	last := first
	for i := range n {
		next := fmt.Sprint("double", i)
		g.node("Concat", []string{last, last}, one(next), attrInt("axis", 0))
		last = next
	}
	g.node("Neg", one(last), one("y"))
	g.output("y")
}

// absurdity is a file that asks for more than there is.
type absurdity struct {
	build func(g *graph)
	stage string // where its way ends
	kind  error  // nil: any, or a plan that is too large to be run
}

// absurd are files that ask for more than there is, and what stops them.
var absurd = map[string]absurdity{
	"an input of 2^52 bytes": {func(g *graph) {
		g.input("x", f32Type, 1<<25, 1<<25)
		g.node("Relu", one("x"), one("y"))
		g.output("y")
	}, "plan", nil},
	"an input of 2^66 bytes": {func(g *graph) {
		g.input("x", f32Type, 1<<32, 1<<32)
		g.node("Relu", one("x"), one("y"))
		g.output("y")
	}, "load", tenure.ErrShape},
	"doubled to 2^42 bytes": {func(g *graph) {
		g.input("x", f32Type, 1024)
		doubled(g, "x", 30)
	}, "plan", nil},
	"doubled to 2^72 bytes": {func(g *graph) {
		g.input("x", f32Type, 1024)
		doubled(g, "x", 60)
	}, "load", tenure.ErrShape},
	"constants doubled to 2^40 bytes": {func(g *graph) {
		g.floats("w", 1)
		doubled(g, "w", 38)
	}, "plan", nil},
	"values of 2^60 bytes, many": {func(g *graph) {
		g.input("x", f32Type, 1<<29, 1<<29)
		for i := range 40 {
			g.floats(fmt.Sprint("w", i), float32(i))
			g.node("Add", []string{"x", fmt.Sprint("w", i)}, one(fmt.Sprint("e", i)))
		}
		g.node("Sum", names("e", 40), one("y"))
		g.output("y")
	}, "plan", tenure.ErrLimit},
	"a product of constants that takes a minute": {func(g *graph) {
		g.ints("shape", 1<<12, 1<<12)
		g.node("ConstantOfShape", one("shape"), one("c"))
		g.node("MatMul", []string{"c", "c"}, one("p"))
		g.node("ReduceSum", one("p"), one("y"))
		g.output("y")
	}, "plan", nil},
	"a constant of 2^40 bytes": {func(g *graph) {
		g.ints("shape", 1<<19, 1<<19)
		g.node("ConstantOfShape", one("shape"), one("c"))
		g.node("Neg", one("c"), one("y"))
		g.output("y")
	}, "plan", nil},
	"a rank that is too high": {func(g *graph) {
		dims := make([]any, 100)
		for i := range dims {
			dims[i] = 1
		}
		g.input("x", f32Type, dims...)
		g.node("Relu", one("x"), one("y"))
		g.output("y")
	}, "load", tenure.ErrCorrupt},
	"an output twice": {func(g *graph) {
		g.input("x", f32Type, 2)
		g.node("Relu", one("x"), one("y"))
		g.output("y")
		g.output("y")
	}, "load", tenure.ErrCorrupt},
	"no outputs": {func(g *graph) {
		g.input("x", f32Type, 2)
		g.node("Relu", one("x"), one("y"))
	}, "load", tenure.ErrCorrupt},
	"nothing": {func(*graph) {}, "load", tenure.ErrCorrupt},
}

func init() {
	// One dimension or window that no machine holds, for what binds ahead of a run.
	one := one
	const long = 1 << 40
	for name, build := range map[string]func(g *graph){
		"resize": func(g *graph) {
			g.floats("scales", 1, 1, 2)
			g.node("Resize", []string{"x", "", "scales"}, one("y"), attrText("mode", "linear"))
		},
		"conv": func(g *graph) {
			g.floats("k", 1, 2, 3)
			g.ints("kshape", 1, 1, 3)
			g.node("Reshape", []string{"k", "kshape"}, one("kernel"))
			g.node("Conv", []string{"x", "kernel"}, one("y"))
		},
		"convtranspose": func(g *graph) {
			g.floats("k", 1, 2, 3)
			g.ints("kshape", 1, 1, 3)
			g.node("Reshape", []string{"k", "kshape"}, one("kernel"))
			g.node("ConvTranspose", []string{"x", "kernel"}, one("y"), attrInts("strides", 2))
		},
		"pool": func(g *graph) {
			g.node("MaxPool", one("x"), one("y"), attrInts("kernel_shape", 1<<39))
		},
		"average": func(g *graph) {
			g.node("AveragePool", one("x"), one("y"), attrInts("kernel_shape", 1<<39), attrInts("pads", 1<<38, 1<<38))
		},
		"pad": func(g *graph) {
			g.ints("pads", 0, 0, 1<<39, 0, 0, 1<<39)
			g.node("Pad", []string{"x", "pads"}, one("y"), attrText("mode", "reflect"))
		},
		"slice": func(g *graph) {
			g.ints("start", -1)
			g.ints("end", -1<<62)
			g.ints("axis", 2)
			g.ints("step", -2)
			g.node("Slice", []string{"x", "start", "end", "axis", "step"}, one("y"))
		},
		"expand": func(g *graph) {
			g.ints("to", 1<<16, 1, 1)
			g.node("Expand", []string{"x", "to"}, one("y"))
		},
		"tile": func(g *graph) {
			g.ints("repeats", 1, 1<<15, 2)
			g.node("Tile", []string{"x", "repeats"}, one("y"))
		},
		"gather": func(g *graph) {
			g.ints("i", 5, 1<<39)
			g.node("Gather", []string{"x", "i"}, one("y"), attrInt("axis", 2))
		},
		"cumsum": func(g *graph) {
			g.ints("axis", 2)
			g.node("CumSum", []string{"x", "axis"}, one("y"))
		},
		"softmax":   func(g *graph) { g.node("Softmax", one("x"), one("y"), attrInt("axis", 2)) },
		"reduce":    func(g *graph) { g.node("ReduceMean", one("x"), one("y")) },
		"transpose": func(g *graph) { g.node("Transpose", one("x"), one("y")) },
		"split": func(g *graph) {
			g.node("Split", one("x"), []string{"y", "z"}, attrInt("axis", 2), attrInt("num_outputs", 2))
		},
		"matmul": func(g *graph) { g.node("MatMul", []string{"x", "t"}, one("y")); g.input("t", f32Type, long, 4) },
		"gemm": func(g *graph) {
			g.input("a", f32Type, 4, long)
			g.input("b", f32Type, 8, long)
			g.node("Gemm", []string{"a", "b"}, one("y"), attrInt("transB", 1))
		},
		"argmax":       func(g *graph) { g.node("ArgMax", one("x"), one("y"), attrInt("axis", 2)) },
		"instancenorm": func(g *graph) { g.floats("s", 1); g.node("InstanceNormalization", []string{"x", "s", "s"}, one("y")) },
		"range": func(g *graph) {
			g.weight("from", i64Type, make([]byte, 8))
			g.weight("limit", i64Type, []byte{0, 0, 0, 0, 0, 1, 0, 0})
			g.weight("step", i64Type, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			g.node("Range", []string{"from", "limit", "step"}, one("y"))
		},
		"onehot": func(g *graph) {
			g.weight("depth", i64Type, []byte{0, 0, 0, 0, 0, 1, 0, 0})
			g.floats("values", 0, 1)
			g.ints("i", 1, 2, 3)
			g.node("OneHot", []string{"i", "depth", "values"}, one("y"))
		},
	} {
		absurd["a long dimension in "+name] = absurdity{func(g *graph) {
			g.input("x", f32Type, 1, 1, long)
			build(g)
			g.output("y")
		}, "plan", nil}
	}
}

// TestAbsurdFiles holds that sizes are found out before anything is allocated
// for them: "plan" stands for a plan that says so, or an error.
func TestAbsurdFiles(t *testing.T) {
	memorytest.Check(t)
	for name, c := range absurd {
		t.Run(name, func(t *testing.T) {
			var g graph
			c.build(&g)
			memory.ResetPeak()
			limited(t, 512<<20)
			o := try(t, name, g.file())
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
	var g graph
	g.input("x", f32Type, "n")
	doubled(&g, "x", 20)
	s := session(t, loadBytes(t, g.file()))
	x := of(t, ramp(16), 16)
	for range 2 {
		if out, err := s.Run(t.Context(), tenure.Inputs{"x": x}); !errors.Is(err, tenure.ErrLimit) {
			out.Release()
			t.Fatalf("got %v, want %v", err, tenure.ErrLimit)
		}
	}
	small := of(t, ramp(1), 1)
	out, err := s.Run(t.Context(), tenure.Inputs{"x": small})
	if err != nil {
		t.Fatalf("a smaller input afterwards: %v", err)
	}
	out.Release()
}
