package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// choice is a model whose output w, the result of a branch, and v, computed
// from it, are f32[2] where the sum of x is above 0, and f32[16] otherwise.
// next is computed in the bytes of state if it is donated. The size of found is
// not known.
func choice() []byte {
	g, a, b := twoSizes()
	g.Input("state", onnxtest.F32, 4)
	g.Node("If", []string{"c"}, []string{"w"}, branches(a, b)...)
	g.Node("Mul", []string{"w", "w"}, []string{"v"})
	g.Node("Neg", []string{"state"}, []string{"next"})
	g.Node("NonZero", []string{"x"}, []string{"found"})
	for _, name := range []string{"next", "w", "v", "found"} {
		g.Output(name)
	}
	return g.File()
}

// An output of a branch of two shapes is written into a tensor of either shape:
// if the other branch runs, the run has failed, and nothing is left of it.
func TestIntoOfBranch(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.LoadBytes(t, choice()))
	data := modeltest.Ramp(16)
	for _, small := range []bool{true, false} {
		data[0] = map[bool]float32{true: 100, false: -100}[small]
		x := modeltest.Of(t, data, 16)
		for _, name := range []string{"w", "v"} {
			for _, size := range []int{2, 16} {
				for _, donate := range []bool{false, true} {
					state, y := modeltest.Must(tensor.Of([]float32{1, 2, 3, 4}, 4)), modeltest.Must(tensor.Of(make([]float32, size), size))
					in := tenure.Inputs{"x": x, "state": state}
					if donate {
						in["state"] = state.Donate()
					}
					out, err := s.Run(context.Background(), in, tenure.Into(name, y))
					if (size == 2) == small {
						if err != nil || out[name] != nil || !slices.Equal(modeltest.Values(t, y), chosenOf(name, data, small)) {
							t.Errorf("%s, %d elements: got %v in the caller's tensor, outputs %v and %v", name, size, modeltest.Values(t, y), out, err)
						}
						modeltest.Must(0, out.Release())
					} else {
						wantOtherBranch(t, err, name, donate)
					}
					if _, err := tensor.Values[float32](state); errors.Is(err, tenure.ErrDonated) != donate {
						t.Errorf("%s, %d elements, donated %v: state: got %v", name, size, donate, err)
					}
					if !y.IsExclusive() || !x.IsExclusive() {
						t.Errorf("%s: got %v and %v, want both exclusive", name, y.WhyNotWritable(), x.WhyNotWritable())
					}
					_ = state.Release() // dead if it was donated
					modeltest.Must(0, y.Release())
				}
			}
		}
	}
}

// chosenOf is what choice computes from data.
func chosenOf(name string, data []float32, small bool) []float32 {
	w := slices.Clone(data)
	for i := range w {
		if w[i] = -w[i]; name == "v" {
			w[i] *= w[i]
		}
	}
	if !small {
		return w
	}
	w = slices.Clone(data[1:3])
	for i := range w {
		if name == "v" {
			w[i] *= w[i]
		}
	}
	return w
}

func wantOtherBranch(t *testing.T, err error, name string, donated bool) {
	t.Helper()
	if !errors.Is(err, tenure.ErrShape) || errors.Is(err, tenure.ErrPartlyWritten) != donated {
		t.Errorf("%s: got %v, want %v, and %v where an input was donated: %v", name, err, tenure.ErrShape, tenure.ErrPartlyWritten, donated)
		return
	}
	for _, part := range []string{name, "f32[2]", "f32[16]"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v, want %s in it", name, err, part)
		}
	}
}

// A tensor that fits none of the possible types is refused before anything
// runs, and so is any for an output of which nothing is known.
func TestIntoOfNoPossibleType(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.LoadBytes(t, choice()))
	x := modeltest.Of(t, modeltest.Ramp(16), 16)
	ints := modeltest.Must(tensor.Of(make([]int64, 16), 16))
	defer ints.Release()
	for name, c := range map[string]struct {
		into string
		y    *tensor.Tensor
		want error
		says string
	}{
		"size":         {"w", modeltest.Of(t, modeltest.Ramp(3), 3), tenure.ErrShape, "want f32[2] or f32[16]"},
		"rank":         {"v", modeltest.Of(t, modeltest.Ramp(16), 4, 4), tenure.ErrShape, "want f32[2] or f32[16]"},
		"element type": {"w", ints, tenure.ErrDType, "want f32[2] or f32[16]"},
		"unknown":      {"found", ints, tenure.ErrUnsupported, "depends on data"},
	} {
		state := modeltest.Must(tensor.Of([]float32{1, 2, 3, 4}, 4))
		_, err := s.Run(context.Background(), tenure.Inputs{"x": x, "state": state.Donate()}, tenure.Into(c.into, c.y))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v that says %q", name, err, c.want, c.says)
		}
		if got := modeltest.Values(t, state); !slices.Equal(got, []float32{1, 2, 3, 4}) || !state.IsExclusive() || !c.y.IsExclusive() {
			t.Errorf("%s: got a state of %v, want it as it was, and the tensor free", name, got)
		}
		modeltest.Must(0, state.Release())
	}
}
