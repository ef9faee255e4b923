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
