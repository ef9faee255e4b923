package serve

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
)

// recurrent is a model whose state has one size: h becomes tanh(h + what the
// tokens stand for), and its logits have no axis of tokens.
func recurrent() []byte {
	const size, words = 8, 96
	random := rand.New(rand.NewPCG(21, 22))
	table := make([]float32, words*size)
	for i := range table {
		table[i] = float32(random.NormFloat64())
	}
	var g onnxtest.Graph
	g.Weight("table", onnxtest.F32, floatBytes(table), words, size)
	g.Ints("axis", 1)
	g.Ints("turned", 1, 0)
	g.Input("input_ids", onnxtest.I64, "batch", "sequence")
	g.Input("h0", onnxtest.F32, "batch", size)
	g.Node("Gather", []string{"table", "input_ids"}, []string{"rows"}, onnxtest.Int("axis", 0))
	g.Node("ReduceSum", []string{"rows", "axis"}, []string{"sum"}, onnxtest.Int("keepdims", 0))
	g.Node("Add", []string{"sum", "h0"}, []string{"h"})
	g.Node("Tanh", []string{"h"}, []string{"hn"})
	g.Node("Transpose", []string{"table"}, []string{"head"})
	g.Node("MatMul", []string{"hn", "head"}, []string{"logits"})
	g.OutputOf("logits", onnxtest.F32, "batch", words)
	g.OutputOf("hn", onnxtest.F32, "batch", size)
	return g.File()
}

// attends begins a model of one layer of attention, of two heads of queries and
// one of keys: with q, k and v of its input_ids.
func attends() *onnxtest.Graph {
	const size, words = 16, 96
	random := rand.New(rand.NewPCG(23, 24))
	g := new(onnxtest.Graph)
	weight := func(name string, rows, columns int64) {
		values := make([]float32, rows*columns)
		for i := range values {
			values[i] = float32(random.NormFloat64())
		}
		g.Weight(name, onnxtest.F32, floatBytes(values), rows, columns)
	}
	weight("table", words, size)
	weight("wq", size, size)
	weight("wk", size, size/2)
	weight("wv", size, size/2)
	weight("head", size, words)
	g.Input("input_ids", onnxtest.I64, "batch", "sequence")
	g.Node("Gather", []string{"table", "input_ids"}, []string{"x"}, onnxtest.Int("axis", 0))
	for _, part := range []string{"q", "k", "v"} {
		g.Node("MatMul", []string{"x", "w" + part}, []string{part})
	}
	for _, part := range []string{"key", "value"} {
		g.Input("past_key_values.0."+part, onnxtest.F32, "batch", 1, "past", size/2)
	}
	return g
}

// decides ends such a model behind its attention y.
func decides(g *onnxtest.Graph) {
	g.Node("Add", []string{"x", "y"}, []string{"both"})
	g.Node("MatMul", []string{"both", "head"}, []string{"logits"})
	g.OutputOf("logits", onnxtest.F32, "batch", "sequence", 96)
	for _, part := range []string{"key", "value"} {
		g.OutputOf("present.0."+part, onnxtest.F32, "batch", 1, "total", 8)
	}
}

// grouped is a model whose attention is told by a mask where its rows are.
func grouped() []byte {
	g := attends()
	g.Input("attention_mask", onnxtest.I64, "batch", "total")
	g.Ints("one", 1)
	g.Ints("axis", 1)
	g.Weight("second", onnxtest.I64, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	g.Node("ReduceSum", []string{"attention_mask", "axis"}, []string{"count"}, onnxtest.Int("keepdims", 0))
	g.Node("Sub", []string{"count", "one"}, []string{"last of them"})
	g.Node("Cast", []string{"last of them"}, []string{"last"}, onnxtest.Int("to", onnxtest.I32))
	g.Node("Shape", []string{"attention_mask"}, []string{"sizes"})
	g.Node("Gather", []string{"sizes", "second"}, []string{"size"})
	g.Node("Cast", []string{"size"}, []string{"all"}, onnxtest.Int("to", onnxtest.I32))
	g.Node("com.microsoft::GroupQueryAttention", []string{"q", "k", "v", "past_key_values.0.key", "past_key_values.0.value", "last", "all"},
		[]string{"y", "present.0.key", "present.0.value"}, onnxtest.Int("num_heads", 2), onnxtest.Int("kv_num_heads", 1))
	decides(g)
	return onnxtest.Message(g.File()).Bytes(8, onnxtest.Message(nil).Text(1, "com.microsoft").Varint(2, 1))
}

// merged is a model that an exporter has made of one with a past and one
// without.
func merged() []byte {
	g := attends()
	g.Input("use_cache_branch", onnxtest.Bool, 1)
	heads := []onnxtest.Message{onnxtest.Int("is_causal", 1), onnxtest.Int("q_num_heads", 2), onnxtest.Int("kv_num_heads", 1)}
	var with, without onnxtest.Graph
	with.Node("Attention", []string{"q", "k", "v", "", "past_key_values.0.key", "past_key_values.0.value"}, []string{"y1", "k1", "v1"}, heads...)
	without.Node("Attention", []string{"q", "k", "v"}, []string{"y0", "k0", "v0"}, heads...)
	for _, part := range []string{"y", "k", "v"} {
		with.Output(part + "1")
		without.Output(part + "0")
	}
	g.Node("If", []string{"use_cache_branch"}, []string{"y", "present.0.key", "present.0.value"}, onnxtest.Subgraph("then_branch", &with), onnxtest.Subgraph("else_branch", &without))
	decides(g)
	return g.FileOf(23)
}

// gpt2 returns the decoder of the optional data whose attention is spelled out.
func gpt2(t testing.TB) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("each of its lengths has a plan of its own")
	}
	shared := os.Getenv("TENURE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(shared, "models", "gpt2_tiny", "model.onnx"))
	if err != nil {
		t.Skip("the optional test data are not here: ", err)
	}
	return data
}
