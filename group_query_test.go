package tenure_test

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
	var g graph
	g.input("x", f32Type, "batch", "tokens", tokenWidth)
	g.input("past_keys", f32Type, "batch", keyHeads, "past", headSize)
	g.input("past_values", f32Type, "batch", keyHeads, "past", headSize)
	if masked {
		g.input("mask", i64Type, "batch", "total")
		g.ints("one", 1)
		g.ints("axis", 1)
		g.weight("first", i64Type, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		g.node("ReduceSum", []string{"mask", "axis"}, one("count"), attrInt("keepdims", 0))
		g.node("Sub", []string{"count", "one"}, one("last of them"))
		g.node("Cast", one("last of them"), one("last"), attrInt("to", i32Type))
		g.node("Shape", one("mask"), one("sizes"))
		g.node("Gather", []string{"sizes", "first"}, one("size"))
		g.node("Cast", one("size"), one("total"), attrInt("to", i32Type))
	} else {
		g.input("last", i32Type, "batch")
		g.input("total", i32Type)
	}
	for name, angle := range map[string]func(float64) float64{"cos": math.Cos, "sin": math.Sin} {
		var raw []byte
		for i := range mostTokens * headSize / 2 {
			place, pair := i/(headSize/2), i%(headSize/2)
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(angle(float64(place)/float64(1+pair)))))
		}
		g.weight(name, f32Type, raw, mostTokens, headSize/2)
	}
	inputs := []string{"x", "", "", "past_keys", "past_values", "last", "total"}
	if rotary {
		inputs = append(inputs, "cos", "sin")
	}
	return g.groupQuery(inputs)
}

// groupQuery encodes a file with the attention behind the nodes so far.
func (g *graph) groupQuery(inputs []string) []byte {
	w := wire(nil)
	for _, in := range inputs {
		w = w.text(1, in)
	}
	w = w.text(2, "y").text(2, "keys").text(2, "values").text(3, "attention").text(4, "GroupQueryAttention").text(7, "com.microsoft")
	w = w.bytes(5, attrInt("num_heads", queryHeads)).bytes(5, attrInt("kv_num_heads", keyHeads))
	if len(inputs) > 7 {
		w = w.bytes(5, attrInt("do_rotary", 1))
	}
	g.nodes = g.nodes.bytes(1, w)
	for _, name := range []string{"y", "keys", "values"} {
		g.output(name)
	}
	return wire(g.file()).bytes(8, wire(nil).text(1, "com.microsoft").varint(2, 1))
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
		keys: of(t, zeros, batch, keyHeads, places, headSize), values: of(t, zeros, batch, keyHeads, places, headSize),
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

// add runs so many more tokens of each sample, the shorter ones padded, and
// gives what comes out of each token.
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
	out := run(t, c.s, tenure.Inputs{
		"x": of(t, x, batch, tokens, tokenWidth), "mask": of(t, mask, batch, c.total),
		"past_keys": c.keys.Reuse(), "past_values": c.values.Reuse(),
	})
	c.keys, c.values = out["keys"], out["values"]
	y := values(t, out["y"])
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
		out = append(out, values(t, x)[at:at+c.lengths[sample]*headSize]...)
	}
	return out
}

// TestGroupQueryAttentionInSteps lets samples of different lengths go on from
// a padded prompt, in a cache that grows and in one with room: each gives what
// it gives alone, in one prompt.
func TestGroupQueryAttentionInSteps(t *testing.T) {
	s := sessionOf(t, groupQueryFile(true, true))
	for _, room := range []int{0, mostTokens} {
		c := begin(t, s, 2, room)
		got := c.add(t, 2, 4)
		for step := range 3 {
			before := firstByte(c.keys)
			for b, rows := range c.add(t, 1, 1) {
				got[b] = append(got[b], rows...)
			}
			if places := c.keys.Shape().Size(2); places != max(room, 5+step) {
				t.Errorf("step %d: got a cache of %d places, want %d", step, places, max(room, 5+step))
			}
			if room > 0 && firstByte(c.keys) != before {
				t.Errorf("step %d: the cache has moved, and it has room", step)
			}
		}
		for b, rows := range got {
			alone := begin(t, s, b+1, 0) // the sample is the last one of its batch
			want := alone.add(t, slices.Repeat([]int{len(rows)}, b+1)...)[b]
			near(t, fmt.Sprintf("room %d, sample %d", room, b), slices.Concat(rows...), slices.Concat(want...))
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
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Fatalf("%s: got %v at %d, want %v", what, got[i], i, want[i])
		}
	}
}

// Lengths that fit neither the tokens nor the cache end a run.
func TestGroupQueryAttentionRefusesLengths(t *testing.T) {
	memorytest.Check(t)
	plain, turned := session(t, loadBytes(t, groupQueryFile(false, false))), session(t, loadBytes(t, groupQueryFile(false, true)))
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
			"x": of(t, make([]float32, c.tokens*tokenWidth), 1, c.tokens, tokenWidth), "last": of(t, []int32{int32(c.last)}, 1), "total": of(t, []int32{int32(c.total)}),
			"past_keys": of(t, cache, 1, keyHeads, c.past, headSize), "past_values": of(t, cache, 1, keyHeads, c.past, headSize),
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
	var g graph
	g.input("q", f32Type, "batch", "tokens", queryHeads*headSize)
	g.input("k", f32Type, "batch", "other", keyHeads*headSize)
	g.input("last", i32Type, "batch")
	g.input("total", i32Type)
	s := sessionOf(t, g.groupQuery([]string{"q", "k", "k", "", "", "last", "total"}))
	for keys, want := range map[int]string{2: "", 3: "want as many elements on both sides"} {
		out, err := s.Run(context.Background(), tenure.Inputs{
			"q": of(t, make([]float32, 2*queryHeads*headSize), 1, 2, queryHeads*headSize), "k": of(t, make([]float32, keys*keyHeads*headSize), 1, keys, keyHeads*headSize),
			"last": of(t, []int32{1}, 1), "total": of(t, []int32{2}),
		})
		out.Release()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d keys: got error %v, want %q", keys, err, want)
		}
	}
}
