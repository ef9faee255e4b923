package shape_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var update = flag.Bool("update", false, "rewrite testdata/models.txt from the models in ../shared")

const modelShapes = "testdata/models.txt"

// mix is a list of shapes with the number of times that programs mention each.
type mix struct {
	sizes  [][]int
	counts []int
}

// models returns the shapes of real models, from the committed list.
func models(t testing.TB) mix {
	text, err := os.ReadFile(modelShapes)
	if err != nil {
		t.Fatal(err)
	}
	var m mix
	for line := range strings.Lines(string(text)) {
		count, dims, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		s, err2 := shape.Parse(dims)
		if !ok || err != nil || err2 != nil {
			t.Fatalf("%s: %q: %v, %v", modelShapes, line, err, err2)
		}
		m.sizes, m.counts = append(m.sizes, slices.Clone(s.Sizes())), append(m.counts, n)
	}
	return m
}

// many returns n different shapes: those of the models, then the same at other
// batch sizes and lengths.
func (m mix) many(n int) [][]int {
	seen := map[string]bool{}
	var all [][]int
	for round := 0; len(all) < n; round++ {
		for _, base := range m.sizes {
			sizes := slices.Clone(base)
			if len(sizes) > 0 {
				sizes[0] = max(sizes[0], 1) + round%32
			}
			if len(sizes) > 1 {
				sizes[1] += round / 32
			}
			if text := fmt.Sprint(sizes); !seen[text] && len(all) < n && (round == 0 || len(sizes) > 1) {
				seen[text] = true
				all = append(all, sizes)
			}
		}
	}
	return all
}

// stream returns n shapes in random order, each as often as programs mention
// it.
func (m mix) stream(n int) [][]int {
	var all [][]int
	for i, sizes := range m.sizes {
		for range m.counts[i] {
			all = append(all, sizes)
		}
	}
	out := make([][]int, n)
	for i := range out {
		out[i] = all[(i*7919)%len(all)]
	}
	return out
}

// The list matches the models; -update reads it from them again.
func TestModelShapes(t *testing.T) {
	m := models(t)
	ranks := map[int]int{}
	for _, sizes := range m.sizes {
		ranks[len(sizes)]++
	}
	if len(m.sizes) < 200 || ranks[4] < 50 {
		t.Errorf("%s: got %d shapes, by rank %v, want those of several models", modelShapes, len(m.sizes), ranks)
	}
	if !*update {
		return
	}
	root := os.Getenv("TENURE_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(root, "models", "*", "*.onnx"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got no models in %s (set TENURE_SHARED), error %v", root, err)
	}
	counts := map[*shape.Shape]int{}
	for _, file := range files {
		if err := countShapes(file, counts); err != nil {
			t.Logf("%s is left out: %v", file, err)
		}
	}
	var b bytes.Buffer
	for _, s := range slices.SortedFunc(maps.Keys(counts), func(x, y *shape.Shape) int {
		return slices.Compare(append([]int{x.Rank()}, x.Sizes()...), append([]int{y.Rank()}, y.Sizes()...))
	}) {
		fmt.Fprintln(&b, counts[s], s)
	}
	if err := os.WriteFile(modelShapes, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// countShapes counts the static shapes of a model's values, as written and
// specialised with 1 for the first open dimension of an input and 16 for the
// others.
func countShapes(file string, counts map[*shape.Shape]int) error {
	m, err := tenure.Load(file)
	if err != nil {
		return err
	}
	defer m.Close()
	shapes := tenure.Shapes{}
	for _, in := range m.Inputs() {
		sizes := make([]int, in.Shape.Rank())
		for i := range sizes {
			n, ok := in.Shape.Dim(i).Size()
			if !ok && i == 0 {
				n = 1
			} else if !ok {
				n = 16
			}
			sizes[i] = n
		}
		shapes[in.Name] = sizes
	}
	special, err := m.Specialise(shapes, nil)
	for _, p := range []*ir.Program{m.Program(), special} {
		if p == nil {
			continue
		}
		add := func(typ op.Type) {
			if typ.Shape != nil && typ.Shape.IsStatic() {
				counts[typ.Shape]++
			}
		}
		for _, v := range slices.Concat(p.Body.Params, p.Weights) {
			add(v.Type)
		}
		p.Walk(func(_ *ir.Block, c *ir.Call) {
			for _, v := range c.Results {
				if v != nil {
					add(v.Type)
				}
			}
		})
	}
	return err
}
