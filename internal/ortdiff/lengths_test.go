package ortdiff_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// modelSizes are sizes for the open dimensions of models in the optional test
// data, beside those of their first data set.
var modelSizes = map[string][]map[string]int{
	"bert_tiny":              {{"batch": 1, "sequence": 29}, {"batch": 3, "sequence": 7}, {"batch": 2, "sequence": 64}},
	"gpt2_tiny":              {{"batch": 1, "sequence": 1, "past_sequence": 31}, {"batch": 2, "sequence": 1, "past_sequence": 13}, {"batch": 3, "sequence": 5, "past_sequence": 17}},
	"vit_tiny":               {{"batch": 2}, {"batch": 5}, {"batch": 7}},
	"resnet18_thin":          {{"batch": 2}, {"batch": 3}, {"batch": 7}},
	"resnet18_thin_bn":       {{"batch": 1, "height": 33, "width": 65}, {"batch": 2, "height": 64, "width": 48}, {"batch": 1, "height": 97, "width": 41}},
	"magika_standard_v3_3":   {{"unk__214": 2}, {"unk__214": 3}, {"unk__214": 5}},
	"silero_vad_op18_ifless": {{"batch": 2, "sequence": 576}, {"batch": 3, "sequence": 320}, {"batch": 1, "sequence": 832}},
	"unet_tiny":              {{"batch": 1, "height": 32, "width": 48}, {"batch": 2, "height": 64, "width": 32}, {"batch": 1, "height": 53, "width": 37}},
}

// TestModelsAtSizes runs models of the optional test data that have open
// dimensions at other sizes, from one load, and compares with ONNX Runtime.
func TestModelsAtSizes(t *testing.T) {
	memorytest.Check(t)
	dir := modeltest.SharedDir(t, "models")
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got no models in %s (%v)", dir, err)
	}
	total := tally{}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			if invariant.Race && name != "bert_tiny" && name != "resnet18_thin" {
				t.Skip("skipped: takes long under the race detector, for which two models stand for all")
			}
			compareModel(t, name, path, ref, total)
		})
	}
	t.Log(total)
}

func compareModel(t *testing.T, name, path string, ref *reference, total tally) {
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := wire.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	var values []*value
	for i := range decoded.Graph.Inputs {
		in := &decoded.Graph.Inputs[i]
		if isInitialised(decoded.Graph, in.Name) {
			continue
		}
		for _, d := range in.Type.Dims {
			if !d.Sized {
				open++
			}
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "test_data_set_0", fmt.Sprintf("input_%d.pb", len(values))))
		if err != nil {
			t.Fatal(err)
		}
		v, err := valueOfFile(in, data)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if open == 0 {
		t.Skip("skipped: every size is fixed in the file")
	}
	own, err := tenure.LoadBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	m := &model{graph: graphOf(decoded.Graph), values: values}
	total["models"]++
	c := &opened{name: name, file: file, m: m, tol: tolerance{rel: 1 << 13, abs: 64}, ref: ref, tally: total, own: own}
	before := total["sizes"]
	c.compare(t, func(yield func([]*value) bool) {
		if !yield(values) {
			return
		}
		r := rand.New(rand.NewPCG(seedOf(name), 2))
		for _, sizes := range modelSizes[name] {
			if !yield(c.named(r, decoded.Graph, sizes)) {
				return
			}
		}
	})
	if n := total["sizes"] - before - 1; n < otherSizes {
		t.Errorf("the open dimensions are %v", dimensions(decoded.Graph))
	}
}

// named returns values of the sizes that the names of open dimensions have. A
// name may be a sum of names.
func (c *opened) named(r *rand.Rand, g *wire.Graph, sizes map[string]int) []*value {
	var out []*value
	for _, v := range c.m.inputs() {
		dims := append([]int{}, v.dims...)
		for _, in := range g.Inputs {
			for axis, d := range in.Type.Dims {
				if in.Name != v.name || d.Sized {
					continue
				}
				dims[axis] = 0
				for term := range strings.SplitSeq(d.Symbol, " + ") {
					dims[axis] += sizes[term]
				}
			}
		}
		if elements(v.dims) > 0 {
			out = append(out, v.at(r, dims))
			continue
		}
		data := (&drawer{Rand: r, mild: true}).data(v.dt, elements(dims)) // a cache that is empty at first
		out = append(out, &value{name: v.name, dt: v.dt, dims: dims, data: data})
	}
	return out
}

// dimensions are the open dimensions of the inputs of a graph.
func dimensions(g *wire.Graph) (list []string) {
	for _, in := range g.Inputs {
		for axis, d := range in.Type.Dims {
			if !d.Sized {
				list = append(list, fmt.Sprintf("%s.%d %q", in.Name, axis, d.Symbol))
			}
		}
	}
	return list
}
