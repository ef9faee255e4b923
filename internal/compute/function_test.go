package compute

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op"
)

// A binder reads the row's parameters, in the row's order, and computes in f64
// on integers that the kernel does not take.
func TestFunctionBinder(t *testing.T) {
	swapped := functionBinders([]*elementwise.Function{
		{Name: "selu", ONNX: "Selu", Types: elementwise.Floats, Params: []elementwise.Param{{Name: "gamma"}, {Name: "alpha"}}},
		{Name: "abs"}, // has no operator
	}, nil)
	if len(swapped) != 1 {
		t.Fatalf("got %d binders, want one", len(swapped))
	}
	x := arg([]float32{-2, -0.5, 0, 0.5, 2}, 5)
	c := call(t, "selu", attrs("alpha", 0.5, "gamma", 3.0), 1, x)
	freshResults(c)
	k, err := swapped["selu"](c)
	if err != nil {
		t.Fatal(err)
	}
	if err := newTaskFor(t, c, k).run(nil); err != nil {
		t.Fatal(err)
	}
	want := floats(x)
	for i, v := range want {
		want[i] = ref.Unary("selu", v, 3, 0.5)
	}
	expect(t, "selu with its parameters swapped", c.Out[0], []int{5}, want, 1e-6)

	// Integers in f64: 100 - 0.25 is truncated.
	ints := arg([]int8{-3, 0, 1, 100}, 4)
	shrunk := eval(t, "shrink", attrs("lambd", 1.0, "bias", 0.25), ints)
	expect(t, "shrink", shrunk, []int{4}, []float64{-2, 0, 0, 99}, 0)
}

// A binder of a function of two operands that has a formula computes in f64 on
// integers.
func TestBinaryFunctionBinder(t *testing.T) {
	rows := []*elementwise.Binary{{
		Name: "sub", ONNX: "Sub", Types: elementwise.Numbers,
		Formula: func(b *elementwise.Builder, x, y elementwise.Value) elementwise.Value { return b.Sub(x, y) },
	}}
	bind := functionBinders(nil, rows)["sub"]
	for _, c := range []struct {
		x, y   op.Arg
		inF64s bool
	}{
		{arg([]int8{-3, 0, 100}, 3), arg([]int8{4}, 1), true},
		{arg([]float32{-3, 0, 100}, 3), arg([]float32{4}, 1), false},
		{arg([]float64{-3, 0, 100}, 3), arg([]float64{4}, 1), false},
	} {
		call := call(t, "sub", nil, 1, c.x, c.y)
		freshResults(call)
		k, err := bind(call)
		if err != nil {
			t.Fatal(err)
		}
		if _, inF64s := k.(*retyped); inF64s != c.inF64s {
			t.Errorf("%v: got the kernel %T, want a conversion %v", c.x.Type, k, c.inF64s)
		}
		task := newTaskFor(t, call, k)
		if err := task.run(aligned(task.Scratch)); err != nil {
			t.Fatal(err)
		}
		expect(t, "sub", call.Out[0], []int{3}, []float64{-7, -4, 96}, 0)
	}
}

// A row whose kernel is not generated is a bug that says what to do.
func TestFunctionWithoutKernel(t *testing.T) {
	for name, bind := range map[string]func(){
		"squash": func() {
			functionBinder(&elementwise.Function{Name: "squash", ONNX: "Squash", Types: elementwise.Floats})
		},
		"squash_pairs": func() { binaryFunctionBinder(&elementwise.Binary{Name: "squash_pairs"}) },
		"squash_less":  func() { binaryFunctionBinder(&elementwise.Binary{Name: "squash_less", Predicate: true}) },
	} {
		func() {
			defer func() {
				text, _ := recover().(string)
				if !strings.Contains(text, "BUG: ") || !strings.Contains(text, name+" has no kernel: go generate") {
					t.Errorf("%s: got %q, want a panic that names it", name, text)
				}
			}()
			bind()
		}()
	}
}

func newTaskFor(t *testing.T, c *op.Call, k Kernel) *Task {
	t.Helper()
	task := newTask(machine.Best(), c, k)
	if err := task.size(); err != nil {
		t.Fatal(err)
	}
	return task
}
