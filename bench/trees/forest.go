package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// forest are complete trees. Their nodes stand breadth first: behind node i are
// 2i+1 and 2i+2.
type forest struct {
	trees, depth, features int
	feature                [][]int
	split, leaf            [][]float32
}

// draw draws the trees. Their splits are numbers that rows have too, so that
// rows go either way.
func (f *forest) draw() {
	r := rand.New(rand.NewPCG(17, 8))
	inner, leaves := 1<<f.depth-1, 1<<f.depth
	for range f.trees {
		feature, split, leaf := make([]int, inner), make([]float32, inner), make([]float32, leaves)
		for i := range feature {
			feature[i], split[i] = r.IntN(f.features), float32(r.Float64()*1.6-0.8)
		}
		for i := range leaf {
			leaf[i] = float32(r.NormFloat64() / 8)
		}
		f.feature, f.split, f.leaf = append(f.feature, feature), append(f.split, split), append(f.leaf, leaf)
	}
}

// graph is a regression of so many rows.
func (f *forest) graph(rows int) *onnxfile.Graph {
	g := onnxfile.New(18)
	g.Import("ai.onnx.ml", 3)
	g.Input("x", onnxfile.F32, rows, f.features)
	var trees, ids, features, yes, no, leafTrees, leafIDs, leafTargets []int64
	var splits, weights []float32
	var modes []string
	inner := 1<<f.depth - 1
	for t := range f.trees {
		for i := range 2*inner + 1 {
			trees, ids = append(trees, int64(t)), append(ids, int64(i))
			if i < inner {
				features, splits, modes = append(features, int64(f.feature[t][i])), append(splits, f.split[t][i]), append(modes, "BRANCH_LEQ")
				yes, no = append(yes, int64(2*i+1)), append(no, int64(2*i+2))
				continue
			}
			features, splits, modes, yes, no = append(features, 0), append(splits, 0), append(modes, "LEAF"), append(yes, 0), append(no, 0)
			leafTrees, leafIDs, leafTargets = append(leafTrees, int64(t)), append(leafIDs, int64(i)), append(leafTargets, 0)
			weights = append(weights, f.leaf[t][i-inner])
		}
	}
	g.Node("ai.onnx.ml::TreeEnsembleRegressor", []string{"x"}, []string{"y"},
		onnxfile.Ints("nodes_treeids", trees...), onnxfile.Ints("nodes_nodeids", ids...), onnxfile.Ints("nodes_featureids", features...),
		onnxfile.Ints("nodes_truenodeids", yes...), onnxfile.Ints("nodes_falsenodeids", no...), onnxfile.Texts("nodes_modes", modes...),
		onnxfile.FloatList("nodes_values", splits...), onnxfile.Ints("target_treeids", leafTrees...), onnxfile.Ints("target_nodeids", leafIDs...),
		onnxfile.Ints("target_ids", leafTargets...), onnxfile.FloatList("target_weights", weights...), onnxfile.Int("n_targets", 1))
	g.Output("y", onnxfile.F32)
	return g
}

// text is the ensemble in the text format of LightGBM. There leaf i is written
// as -1-i.
func (f *forest) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=%d\nobjective=regression\n", f.features-1)
	fmt.Fprintf(&b, "tree_sizes=%s\n\n", strings.TrimSpace(strings.Repeat("1 ", f.trees)))
	inner := 1<<f.depth - 1
	for t := range f.trees {
		child := func(i int) int {
			if i < inner {
				return i
			}
			return inner - 1 - i
		}
		var left, right []int
		kinds := make([]int, inner) // at most the split, no missing values
		for i := range inner {
			left, right = append(left, child(2*i+1)), append(right, child(2*i+2))
		}
		fmt.Fprintf(&b, "Tree=%d\nnum_leaves=%d\nnum_cat=0\nsplit_feature=%s\nthreshold=%s\ndecision_type=%s\nleft_child=%s\nright_child=%s\nleaf_value=%s\nshrinkage=1\n\n\n",
			t, inner+1, list(f.feature[t]), list(f.split[t]), list(kinds), list(left), list(right), list(f.leaf[t]))
	}
	b.WriteString("end of trees\n")
	return b.Bytes()
}

// list are numbers with spaces between them. A float32 is written with all
// digits that it has in float64.
func list[T int | float32](numbers []T) string {
	words := make([]string, len(numbers))
	for i, v := range numbers {
		words[i] = fmt.Sprint(float64(v))
	}
	return strings.Join(words, " ")
}

// floats reads a file of float32.
func floats(file string) ([]float32, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}
