package compute

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// Every built-in operator without nested blocks has kernels, and no binder is
// registered for an operator of no table.
func TestEveryOperatorIsBound(t *testing.T) {
	for _, def := range op.Builtin().Defs() {
		if got, want := Supported(def), def.Regions == 0; got != want {
			t.Errorf("%s: Supported is %v, want %v", def.Name, got, want)
		}
	}
	for def := range binders {
		if op.Builtin().Lookup(def.Name) != def {
			t.Errorf("%s is bound and not in the table", def.Name)
		}
	}
}

// A tile is worth claiming, and a large call has several.
func TestTileGrain(t *testing.T) {
	big := random(dtype.F32, 1, 0, 1, 40_000, 8)
	cube := fromFloats(dtype.F32, floats(big), 5000, 8, 8)
	planes := fromFloats(dtype.F32, floats(big), 1, 20_000, 4, 4)
	weights := random(dtype.F32, 1, 0, 1, 20_000)
	for _, c := range []*op.Call{
		call(t, "relu", nil, 1, big),
		call(t, "add", nil, 1, big, big),
		call(t, "copy", nil, 1, big),
		call(t, "transpose", nil, 1, big),
		call(t, "concat", attrs("axis", 1), 1, big, big),
		call(t, "split", attrs("axis", 1), 4, big),
		call(t, "pad", nil, 1, big, ints(0, 1, 0, 1)),
		call(t, "gather", nil, 1, big, ints(values[int64](1, 40_000, 0, 39_999)...)),
		call(t, "one_hot", nil, 1, ints(make([]int64, 40_000)...), scalar[int64](8), arg([]float32{0, 1}, 2)),
		call(t, "trilu", nil, 1, cube),
		call(t, "cum_sum", nil, 1, big, scalar[int64](1)),
		call(t, "reduce_sum", nil, 1, big, ints(1)),
		call(t, "arg_max", attrs("axis", 1), 1, big),
		call(t, "softmax", nil, 1, big),
		call(t, "layer_normalization", nil, 1, big, random(dtype.F32, 1, 0, 1, 8)),
		call(t, "batch_normalization", nil, 1, planes, weights, weights, weights, weights),
		call(t, "instance_normalization", nil, 1, planes, weights, weights),
		call(t, "max_pool", attrs("kernel_shape", []int64{2, 2}), 1, planes),
		call(t, "global_average_pool", nil, 1, planes),
	} {
		run(t, c)
		task, err := Bind(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Start(); err != nil {
			t.Fatal(err)
		}
		if task.Tiles < 3 || task.Tiles > 80 {
			t.Errorf("%s of 320,000 elements: got %d tiles, want 3 to 80", c.Def.Name, task.Tiles)
		}
	}
}
