package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// lengthsOfModels returns sizes of the open dimensions of models, some of them
// small enough or odd enough for other kernels.
func lengthsOfModels() map[string][]map[string]int {
	type sizes = map[string]int
	pairs := func(a, b string, list ...int) (all []sizes) {
		for i := 0; i < len(list); i += 2 {
			all = append(all, sizes{a: list[i], b: list[i+1]})
		}
		return all
	}
	return map[string][]sizes{
		"bert_tiny":        pairs("batch", "sequence", 1, 1, 1, 2, 1, 17, 2, 17, 17, 2, 3, 64, 1, 63, 5, 5, 1, 18),
		"resnet18_thin":    pairs("batch", "", 1, 0, 2, 0, 3, 0, 7, 0),
		"resnet18_thin_bn": pairs("height", "width", 32, 32, 33, 65, 96, 96, 65, 33, 40, 130),
		"unet_tiny":        pairs("height", "width", 16, 16, 32, 48, 48, 32, 64, 64, 16, 80),
		"vit_tiny":         pairs("batch", "", 1, 0, 2, 0, 5, 0),
		"gpt2_tiny": {
			{"batch": 1, "sequence": 7, "past_sequence": 0}, {"batch": 1, "sequence": 1, "past_sequence": 7}, {"batch": 1, "sequence": 1, "past_sequence": 8},
			{"batch": 2, "sequence": 1, "past_sequence": 8}, {"batch": 2, "sequence": 3, "past_sequence": 3}, {"batch": 1, "sequence": 1, "past_sequence": 1},
			{"batch": 3, "sequence": 5, "past_sequence": 40}, {"batch": 1, "sequence": 64, "past_sequence": 0}, {"batch": 1, "sequence": 1, "past_sequence": 63},
		},
	}
}

// TestLengthsOfModels runs one session of each model at many sizes in random
// order, and each size in a model that meets no other. The results are the same
// bits.
func TestLengthsOfModels(t *testing.T) {
	for name, all := range lengthsOfModels() {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			path := filepath.Join(modeltest.SharedDir(t, filepath.Join("models", name)), "model.onnx")
			m := modeltest.Load(t, path)
			s := modeltest.Session(t, m)
			r, rounds := rand.New(rand.NewPCG(1, 2)), 3
			if invariant.Race {
				rounds = 1
			}
			for range rounds {
				for _, k := range r.Perm(len(all)) {
					in := inputsOf(t, m, all[k])
					got := modeltest.Run(t, s, in)
					want := modeltest.Run(t, modeltest.Session(t, modeltest.Load(t, path)), in)
					for output := range want {
						if a, b := bytesOf(t, got[output]), bytesOf(t, want[output]); got[output].Shape() != want[output].Shape() || !bytes.Equal(a, b) {
							t.Errorf("%v: output %s: got %s of other bits than %s of a new model", all[k], output, got[output].Shape(), want[output].Shape())
						}
					}
				}
			}
			f := m.Structures()
			// A session forgets plans: a size may be compiled again.
			if f.Compiled < len(all) || f.Instances+f.Kept+f.Evictions != f.Compiled || len(f.Pinned) > 0 {
				t.Errorf("got %+v, want %d sizes or more, each a structure or an instance", f, len(all))
			}
			t.Logf("%d sizes: %d structures", f.Compiled, f.Compiled-f.Instances)
		})
	}
}

// TestFormsOfModels runs one session of each model at many sizes. A weight has
// one packed form at all of them, which the plans name, and the first run takes
// all memory for packed weights.
func TestFormsOfModels(t *testing.T) {
	for name, all := range lengthsOfModels() {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			m := modeltest.Load(t, filepath.Join(modeltest.SharedDir(t, filepath.Join("models", name)), "model.onnx"))
			s := modeltest.Session(t, m, tenure.WithThreads(1))
			var first []plan.Packed
			held := int64(0)
			for i, sizes := range all {
				in := inputsOf(t, m, sizes)
				modeltest.Run(t, s, in)
				shapes := tenure.Shapes{}
				for name, x := range in {
					shapes[name] = x.(*tensor.Tensor).Shape().Sizes()
				}
				p, err := s.Plan(context.Background(), shapes)
				if err != nil {
					t.Fatal(err)
				}
				panels := panelBytes()
				if i == 0 {
					first, held = p.Packed, panels
				}
				if panels != held {
					t.Errorf("%v: got %d bytes of panels in memory, want %d as after the first run", sizes, panels, held)
				}
				if len(p.Packed) != len(first) {
					t.Fatalf("%v: got %d weights packed, want %d as at first", sizes, len(p.Packed), len(first))
				}
				for k, w := range p.Packed {
					if want := first[k]; w.Form == "" || w.Form != want.Form || w.Bytes != want.Bytes {
						t.Errorf("%v: got %+v, want the form and the size of %+v", sizes, w, want)
					}
				}
			}
			t.Logf("%d weights in %d bytes of panels", len(first), held)
		})
	}
}

// panelBytes returns the size of all buffers that are labelled as panels.
func panelBytes() (sum int64) {
	for _, b := range memory.Live() {
		if strings.Contains(b.Label, "panels of ") {
			sum += int64(b.Bytes)
		}
	}
	return sum
}

// inputsOf makes inputs of a model with open dimensions of these sizes, 1 where
// a name has none. A name may be a sum.
func inputsOf(t modeltest.TB, m *tenure.Model, sizes map[string]int) tenure.Inputs {
	in := tenure.Inputs{}
	for _, info := range m.Inputs() {
		dims := make([]int, info.Shape.Rank())
		for i := range dims {
			d := info.Shape.Dim(i)
			if n, ok := d.Size(); ok {
				dims[i] = n
				continue
			}
			for term := range strings.SplitSeq(strings.Trim(d.String(), `"`), " + ") {
				if n, ok := sizes[term]; ok {
					dims[i] += n
				} else {
					dims[i]++
				}
			}
		}
		n := shape.MustOf(dims...).NumElements()
		switch info.DType {
		case dtype.F32:
			in[info.Name] = modeltest.Of(t, modeltest.Ramp(n), dims...)
		case dtype.I64:
			data := make([]int64, n)
			for i := range data {
				data[i] = int64(i+1) % 2
			}
			in[info.Name] = modeltest.Of(t, data, dims...)
		default:
			t.Fatalf("input %s is of %s, want f32 or i64 (the test has %v)", info.Name, info.DType, slices.Sorted(maps.Keys(sizes)))
		}
	}
	return in
}

func bytesOf(t *testing.T, x *tensor.Tensor) []byte {
	v, err := tensor.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "%x", v)
}
