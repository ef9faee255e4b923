package acceptance_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

const (
	queryHeads, keyHeads, headSize = 4, 2, 8
	tokenWidth                     = (queryHeads + 2*keyHeads) * headSize
	mostTokens                     = 16 // as the tables of angles have
)

// groupQueryFile is one attention of packed tokens behind a past. The lengths
// come from a mask, as exporters write them, or are given.
func groupQueryFile(masked, rotary bool) []byte {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", "tokens", tokenWidth)
	g.Input("past_keys", onnxtest.F32, "batch", keyHeads, "past", headSize)
	g.Input("past_values", onnxtest.F32, "batch", keyHeads, "past", headSize)
	if masked {
		g.Input("mask", onnxtest.I64, "batch", "total")
		g.Ints("one", 1)
		g.Ints("axis", 1)
		g.Weight("first", onnxtest.I64, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		g.Node("ReduceSum", []string{"mask", "axis"}, []string{"count"}, onnxtest.Int("keepdims", 0))
		g.Node("Sub", []string{"count", "one"}, []string{"last of them"})
		g.Node("Cast", []string{"last of them"}, []string{"last"}, onnxtest.Int("to", onnxtest.I32))
		g.Node("Shape", []string{"mask"}, []string{"sizes"})
		g.Node("Gather", []string{"sizes", "first"}, []string{"size"})
		g.Node("Cast", []string{"size"}, []string{"total"}, onnxtest.Int("to", onnxtest.I32))
	} else {
		g.Input("last", onnxtest.I32, "batch")
		g.Input("total", onnxtest.I32)
	}
	for name, angle := range map[string]func(float64) float64{"cos": math.Cos, "sin": math.Sin} {
		var raw []byte
		for i := range mostTokens * headSize / 2 {
			place, pair := i/(headSize/2), i%(headSize/2)
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(angle(float64(place)/float64(1+pair)))))
		}
		g.Weight(name, onnxtest.F32, raw, mostTokens, headSize/2)
	}
	inputs := []string{"x", "", "", "past_keys", "past_values", "last", "total"}
	if rotary {
		inputs = append(inputs, "cos", "sin")
	}
	return groupQuery(&g, inputs)
}

// groupQuery encodes a file with the attention behind the nodes so far.
func groupQuery(g *onnxtest.Graph, inputs []string) []byte {
	w := onnxtest.Message(nil)
	for _, in := range inputs {
		w = w.Text(1, in)
	}
	w = w.Text(2, "y").Text(2, "keys").Text(2, "values").Text(3, "attention").Text(4, "GroupQueryAttention").Text(7, "com.microsoft")
	w = w.Bytes(5, onnxtest.Int("num_heads", queryHeads)).Bytes(5, onnxtest.Int("kv_num_heads", keyHeads))
	if len(inputs) > 7 {
		w = w.Bytes(5, onnxtest.Int("do_rotary", 1))
	}
	g.Nodes = g.Nodes.Bytes(1, w)
	for _, name := range []string{"y", "keys", "values"} {
		g.Output(name)
	}
	return onnxtest.Message(g.File()).Bytes(8, onnxtest.Message(nil).Text(1, "com.microsoft").Varint(2, 1))
}

// conversation is a batch of samples under way, of different lengths.
type conversation struct {
	s            *tenure.Session
	lengths      []int
	total        int // of the longest sample
	keys, values *tensor.Tensor
}

// begin is a conversation with a past of that many places.
func begin(t *testing.T, s *tenure.Session, batch, places int) *conversation {
	zeros := make([]float32, batch*keyHeads*places*headSize)
	return &conversation{
		s: s, lengths: make([]int, batch),
		keys: modeltest.Of(t, zeros, batch, keyHeads, places, headSize), values: modeltest.Of(t, zeros, batch, keyHeads, places, headSize),
	}
}

// tokenRow is the row of a sample at a place.
func tokenRow(sample, place int) []float32 {
	r := rand.New(rand.NewPCG(uint64(sample), uint64(place)))
	row := make([]float32, tokenWidth)
	for i := range row {
		row[i] = float32(r.NormFloat64())
	}
	return row
}

// add runs counts more tokens of each sample, the shorter ones padded, and
// returns the output for each token.
func (c *conversation) add(t *testing.T, counts ...int) [][][]float32 {
	t.Helper()
	batch, tokens := len(counts), slices.Max(counts)
	c.total += tokens
	var x []float32
	mask := make([]int64, batch*c.total)
	for b, n := range counts {
		for i := range tokens {
			row := tokenRow(b, c.lengths[b]+i)
			if i >= n {
				row = slices.Repeat([]float32{9}, tokenWidth)
			}
			x = append(x, row...)
		}
		c.lengths[b] += n
		for i := range c.lengths[b] {
			mask[b*c.total+i] = 1
		}
	}
	out := modeltest.Run(t, c.s, tenure.Inputs{
		"x": modeltest.Of(t, x, batch, tokens, tokenWidth), "mask": modeltest.Of(t, mask, batch, c.total),
		"past_keys": c.keys.Reuse(), "past_values": c.values.Reuse(),
	})
	c.keys, c.values = out["keys"], out["values"]
	y := modeltest.Values(t, out["y"])
	rows := make([][][]float32, batch)
	for b, n := range counts {
		for i := range n {
			at := (b*tokens + i) * queryHeads * headSize
			rows[b] = append(rows[b], y[at:at+queryHeads*headSize])
		}
	}
	return rows
}

// cached are the rows of a cache that a sample has.
func (c *conversation) cached(t *testing.T, x *tensor.Tensor, sample int) []float32 {
	places := x.Shape().Size(2)
	var out []float32
	for head := range keyHeads {
		at := (sample*keyHeads + head) * places * headSize
		out = append(out, modeltest.Values(t, x)[at:at+c.lengths[sample]*headSize]...)
	}
	return out
}

// TestGroupQueryAttentionInSteps continues samples of different lengths from
// a padded prompt, in a cache that grows and in one with spare capacity: the
// output of each is the same as alone, in one prompt.
func TestGroupQueryAttentionInSteps(t *testing.T) {
	s := modeltest.SessionOf(t, groupQueryFile(true, true))
	for _, capacity := range []int{0, mostTokens} {
		c := begin(t, s, 2, capacity)
		got := c.add(t, 2, 4)
		for step := range 3 {
			before := firstByte(c.keys)
			for b, rows := range c.add(t, 1, 1) {
				got[b] = append(got[b], rows...)
			}
			if places := c.keys.Shape().Size(2); places != max(capacity, 5+step) {
				t.Errorf("step %d: got a cache of %d places, want %d", step, places, max(capacity, 5+step))
			}
			if capacity > 0 && firstByte(c.keys) != before {
				t.Errorf("step %d: the cache has moved, although it has capacity", step)
			}
		}
		for b, rows := range got {
			alone := begin(t, s, b+1, 0) // the sample is the last one of its batch
			want := alone.add(t, slices.Repeat([]int{len(rows)}, b+1)...)[b]
			near(t, fmt.Sprintf("capacity %d, sample %d", capacity, b), slices.Concat(rows...), slices.Concat(want...))
			near(t, "keys", c.cached(t, c.keys, b), alone.cached(t, alone.keys, b))
			near(t, "values", c.cached(t, c.values, b), alone.cached(t, alone.values, b))
		}
	}
}

func firstByte(x *tensor.Tensor) *byte {
	data, first := x.UnsafeBytes()
	return &data[:first+1][first]
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] && !(math.Abs(float64(got[i]-want[i])) <= 1e-5) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: got %v at %d, want %v", what, got[i], i, want[i])
		}
	}
}

// Lengths that fit neither the tokens nor the cache end a run.
func TestGroupQueryAttentionRefusesLengths(t *testing.T) {
	memorytest.Check(t)
	plain, turned := modeltest.Session(t, modeltest.LoadBytes(t, groupQueryFile(false, false))), modeltest.Session(t, modeltest.LoadBytes(t, groupQueryFile(false, true)))
	for _, c := range []struct {
		s                         *tenure.Session
		tokens, past, total, last int
		want                      string
	}{
		{plain, 1, 2, 3, 2, ""},
		{plain, 1, 2, 3, 3, "write_indices: got 3 for sample 0, want 0 to 2 (1 of 3 places are written)"},
		{turned, 1, 2, 3, -1, "positions: got -1 at position 0"},
		{plain, 1, 2, 3, -1, "write_indices: got -1 for sample 0"},
		{plain, 2, 0, 2, 2, "write_indices: got 1 for sample 0, want 0 to 0"},
		{plain, 2, 3, 5, 0, "write_indices: got -1 for sample 0"},
		{plain, 2, 3, 5, 5, "write_indices: got 4 for sample 0, want 0 to 3"},
		{plain, 1, 4, 4, 3, ""},
		{plain, 1, 4, 4, 4, "write_indices: got 4 for sample 0, want 0 to 3"},
		{turned, 1, mostTokens, mostTokens + 1, mostTokens, "positions: got 16 at position 0, want 0 to 15"},
	} {
		cache := make([]float32, keyHeads*c.past*headSize)
		in := tenure.Inputs{
			"x": modeltest.Of(t, make([]float32, c.tokens*tokenWidth), 1, c.tokens, tokenWidth), "last": modeltest.Of(t, []int32{int32(c.last)}, 1), "total": modeltest.Of(t, []int32{int32(c.total)}),
			"past_keys": modeltest.Of(t, cache, 1, keyHeads, c.past, headSize), "past_values": modeltest.Of(t, cache, 1, keyHeads, c.past, headSize),
		}
		out, err := c.s.Run(context.Background(), in)
		out.Release()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d tokens behind %d, %d in all, the last one at %d: got error %v, want %q", c.tokens, c.past, c.total, c.last, err, c.want)
		}
	}
}

// Keys of another length than the queries would be cached and not be seen.
func TestGroupQueryAttentionOfOtherKeys(t *testing.T) {
	var g onnxtest.Graph
	g.Input("q", onnxtest.F32, "batch", "tokens", queryHeads*headSize)
	g.Input("k", onnxtest.F32, "batch", "other", keyHeads*headSize)
	g.Input("last", onnxtest.I32, "batch")
	g.Input("total", onnxtest.I32)
	s := modeltest.SessionOf(t, groupQuery(&g, []string{"q", "k", "k", "", "", "last", "total"}))
	for keys, want := range map[int]string{2: "", 3: "want as many elements on both sides"} {
		out, err := s.Run(context.Background(), tenure.Inputs{
			"q": modeltest.Of(t, make([]float32, 2*queryHeads*headSize), 1, 2, queryHeads*headSize), "k": modeltest.Of(t, make([]float32, keys*keyHeads*headSize), 1, keys, keyHeads*headSize),
			"last": modeltest.Of(t, []int32{1}, 1), "total": modeltest.Of(t, []int32{2}),
		})
		out.Release()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d keys: got error %v, want %q", keys, err, want)
		}
	}
}
