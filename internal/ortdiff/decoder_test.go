package ortdiff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// The sizes of the decoder.
const (
	decoderLayers, decoderWords, decoderWidth, decoderInner = 2, 50, 64, 96
	decoderHeads, decoderGroups, decoderSize, decoderPlaces = 4, 2, 16, 32
	decoderBlock                                            = 32
)

// Symbols for sizes of its inputs.
const (
	batchSize = -2 - iota
	sequenceLength
	pastLength
	totalLength
)

// decoder is a language model under way: the nodes that exporters of ONNX
// Runtime write, with weights drawn at random.
type decoder struct{ *drawer }

// put adds a node and returns its first output.
func (d *decoder) put(domain, op string, in, out []string, attrs ...attr) string {
	d.m.graph.nodes = append(d.m.graph.nodes, &node{op: op, domain: domain, in: in, out: out, attrs: attrs})
	return out[0]
}

// weight is a constant of numbers of about that size.
func (d *decoder) weight(size float64, dims ...int) string {
	list := make([]float64, elements(dims))
	for i := range list {
		list[i] = size * d.NormFloat64()
	}
	return d.value(dtype.F32, dims, encodeFloats(dtype.F32, list...), true).name
}

func (d *decoder) list(dims []int, list ...int64) string {
	return d.value(dtype.I64, dims, encodeInts(dtype.I64, list...), true).name
}

// linear multiplies x by weights of 4 bits.
func (d *decoder) linear(x, y string, in, out int) string {
	blocks := in / decoderBlock
	data, scales := make([]byte, out*in/2), make([]float64, out*blocks)
	for i := range data {
		data[i] = byte(d.IntN(256))
	}
	for i := range scales {
		scales[i] = (0.5 + d.Float64()) / 4 / math.Sqrt(float64(in))
	}
	w := d.value(dtype.U8, []int{out, blocks, decoderBlock / 2}, data, true).name
	s := d.value(dtype.F32, []int{out * blocks}, encodeFloats(dtype.F32, scales...), true).name
	return d.put(contribDomain, "MatMulNBits", []string{x, w, s}, []string{y},
		attr{"K", int64(in)}, attr{"N", int64(out)}, attr{"bits", int64(4)}, attr{"block_size", int64(decoderBlock)}, attr{"accuracy_level", int64(0)})
}

// norm normalises the sum of x and the residual, which it gives as well.
func (d *decoder) norm(residual, x, name string) (y, sum string) {
	sum = name + ".sum"
	y = d.put(contribDomain, "SkipSimplifiedLayerNormalization", []string{residual, x, d.weight(1, decoderWidth)},
		[]string{name, "", "", sum}, attr{"epsilon", float32(1e-5)})
	return y, sum
}

// lengths are the parts of the mask that the attention reads.
func (d *decoder) lengths() (last, total string) {
	one := d.list([]int{1}, 1)
	n := d.put("", "ReduceSum", []string{"attention_mask", one}, []string{"counts"}) // [batch,1]
	n = d.put("", "Sub", []string{n, one}, []string{"last"})
	last = d.put("", "Cast", []string{n}, []string{"seqlens_k"}, attr{"to", int64(dtype.I32.ONNX())})
	n = d.put("", "Shape", []string{"attention_mask"}, []string{"sizes"})
	n = d.put("", "Gather", []string{n, d.list([]int{}, 1)}, []string{"size"}, attr{"axis", int64(0)})
	return last, d.put("", "Cast", []string{n}, []string{"total_sequence_length"}, attr{"to", int64(dtype.I32.ONNX())})
}

// mixture is the part of a layer that some experts compute for each token.
func (d *decoder) mixture(x string, name func(string) string) string {
	const experts, inner = 4, 32
	scores := d.put("", "MatMul", []string{x, d.weight(0.5, decoderWidth, experts)}, []string{name("scores")})
	scores = d.put("", "Reshape", []string{scores, d.list([]int{2}, -1, experts)}, []string{name("scores of tokens")})
	product := func(rows, columns int) []string {
		blocks := columns / decoderBlock
		scales := make([]float64, experts*rows*blocks)
		for i := range scales {
			scales[i] = (0.5 + d.Float64()) / 4 / math.Sqrt(float64(columns))
		}
		w := d.value(dtype.U8, []int{experts, rows, columns / 2}, d.someBytes(experts*rows*columns/2), true).name
		return []string{w, d.value(dtype.F32, []int{experts, rows, blocks}, encodeFloats(dtype.F32, scales...), true).name, d.weight(0.2, experts, rows)}
	}
	in := slices.Concat([]string{x, scores}, product(2*inner, decoderWidth), product(decoderWidth, inner))
	return d.put(contribDomain, "QMoE", in, []string{name("mixture")}, attr{"k", int64(2)}, attr{"activation_type", "swiglu"}, attr{"swiglu_fusion", int64(1)},
		attr{"activation_alpha", float32(1.702)}, attr{"activation_beta", float32(1)}, attr{"swiglu_limit", float32(7)},
		attr{"normalize_routing_weights", int64(1)}, attr{"expert_weight_bits", int64(4)}, attr{"block_size", int64(decoderBlock)})
}

// drawDecoder makes the model. Its inputs have symbols for sizes and no bytes.
// One with experts has sinks in its attention too.
func drawDecoder(r *rand.Rand, experts bool) *model {
	d := &decoder{&drawer{Rand: r, m: &model{opset: 18}}}
	d.input("input_ids", dtype.I64, batchSize, sequenceLength)
	d.input("attention_mask", dtype.I64, batchSize, totalLength)
	last, total := d.lengths()
	var tables [2][]float64
	for i := range decoderPlaces * decoderSize / 2 {
		at, pair := i/(decoderSize/2), i%(decoderSize/2)
		s, c := math.Sincos(float64(at) * math.Pow(100, -2*float64(pair)/decoderSize))
		tables[0], tables[1] = append(tables[0], c), append(tables[1], s)
	}
	var angles [2]string
	for i, list := range tables {
		angles[i] = d.value(dtype.F32, []int{decoderPlaces, decoderSize / 2}, encodeFloats(dtype.F32, list...), true).name
	}
	residual := d.put("", "Gather", []string{d.weight(1, decoderWords, decoderWidth), "input_ids"}, []string{"embeddings"})
	x := d.put("", "SimplifiedLayerNormalization", []string{residual, d.weight(1, decoderWidth)}, []string{"norm"},
		attr{"axis", int64(-1)}, attr{"epsilon", float32(1e-5)}, attr{"stash_type", int64(1)})
	for layer := range decoderLayers {
		name := func(s string) string { return fmt.Sprintf("layer %d %s", layer, s) }
		q := d.linear(x, name("q"), decoderWidth, decoderHeads*decoderSize)
		k := d.linear(x, name("k"), decoderWidth, decoderGroups*decoderSize)
		v := d.linear(x, name("v"), decoderWidth, decoderGroups*decoderSize)
		outs := []string{name("attention")}
		ins := []string{q, k, v}
		for _, part := range []string{"key", "value"} {
			d.input(fmt.Sprintf("past.%d.%s", layer, part), dtype.F32, batchSize, decoderGroups, pastLength, decoderSize)
			ins, outs = append(ins, fmt.Sprintf("past.%d.%s", layer, part)), append(outs, fmt.Sprintf("present.%d.%s", layer, part))
			d.m.graph.outputs = append(d.m.graph.outputs, typed{name: outs[len(outs)-1]})
		}
		ins = append(ins, last, total, angles[0], angles[1], "", "")
		if experts {
			ins = append(ins, d.weight(1, decoderHeads))
		}
		a := d.put(contribDomain, "GroupQueryAttention", ins, outs, attr{"num_heads", int64(decoderHeads)},
			attr{"kv_num_heads", int64(decoderGroups)}, attr{"scale", float32(0.25)}, attr{"do_rotary", int64(1)}, attr{"rotary_interleaved", int64(0)},
			attr{"local_window_size", int64(-1)}, attr{"softcap", float32(0)})
		x, residual = d.norm(residual, d.linear(a, name("o"), decoderHeads*decoderSize, decoderWidth), name("norm 1"))
		if experts {
			x, residual = d.norm(residual, d.mixture(x, name), name("norm 2"))
			continue
		}
		gate, up := d.linear(x, name("gate"), decoderWidth, decoderInner), d.linear(x, name("up"), decoderWidth, decoderInner)
		open := d.put("", "Mul", []string{gate, d.put("", "Sigmoid", []string{gate}, []string{name("sigmoid")})}, []string{name("open")})
		inner := d.put("", "Mul", []string{open, up}, []string{name("inner")})
		x, residual = d.norm(residual, d.linear(inner, name("down"), decoderInner, decoderWidth), name("norm 2"))
	}
	d.m.graph.outputs = append(d.m.graph.outputs, typed{name: d.linear(x, "logits", decoderWidth, decoderWords)})
	return d.m
}

// input declares an input.
func (d *decoder) input(name string, dt dtype.DType, dims ...int) {
	d.m.values = append(d.m.values, &value{name: name, dt: dt, dims: dims})
}

// TestDecoder runs a prompt of samples of different lengths and steps behind
// it through a whole language model, each side with its own cache.
func TestDecoder(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	for name, experts := range map[string]bool{"plain": false, "experts": true} {
		t.Run(name, func(t *testing.T) { compareDecoder(t, ref, experts) })
	}
}

func compareDecoder(t *testing.T, ref *reference, experts bool) {
	r := rand.New(rand.NewPCG(7, 11))
	file := drawDecoder(r, experts).encode()
	m, err := tenure.LoadBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lengths := []int{3, 5}
	total, tokens := 5, 5
	var ours, theirs map[string]*value
	for step := range 5 {
		shared := inputsOf(r, lengths, tokens, total)
		want, err := ref.run(file, append(slices.Clone(shared), pasts(theirs, len(lengths))...))
		if err != nil {
			t.Fatalf("step %d: ONNX Runtime: %v", step, err)
		}
		got, err := (&model{values: append(slices.Clone(shared), pasts(ours, len(lengths))...)}).session(s, func(x *tensor.Tensor) tensor.Operand { return x })
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		ours, theirs = got, want
		for name, w := range want {
			g := got[name]
			if diff := (tolerance{16, 16, 0, ""}).apart(valid(g, lengths, tokens), valid(w, lengths, tokens), scale(w)); diff != "" {
				t.Fatalf("step %d: %s: %.2000s", step, name, diff)
			}
		}
		for b := range lengths {
			lengths[b]++
		}
		tokens, total = 1, total+1
	}
}

// inputsOf are the tokens and the mask of a step; samples end in padding.
func inputsOf(r *rand.Rand, lengths []int, tokens, total int) []*value {
	var ids, mask []int64
	for _, n := range lengths {
		for range tokens {
			ids = append(ids, int64(r.IntN(decoderWords)))
		}
		for i := range total {
			mask = append(mask, int64(min(1, max(0, n-i))))
		}
	}
	return []*value{
		{name: "input_ids", dt: dtype.I64, dims: []int{len(lengths), tokens}, data: encodeInts(dtype.I64, ids...)},
		{name: "attention_mask", dt: dtype.I64, dims: []int{len(lengths), total}, data: encodeInts(dtype.I64, mask...)},
	}
}

// pasts are the caches that a step has left, empty ones before the first.
func pasts(out map[string]*value, batch int) []*value {
	var list []*value
	for layer := range decoderLayers {
		for _, part := range []string{"key", "value"} {
			v := &value{name: fmt.Sprintf("past.%d.%s", layer, part), dt: dtype.F32, dims: []int{batch, decoderGroups, 0, decoderSize}}
			if out != nil {
				present := out[fmt.Sprintf("present.%d.%s", layer, part)]
				v.dims, v.data = present.dims, present.data
			}
			list = append(list, v)
		}
	}
	return list
}

// valid is an output with zeros for padding, which is left open: logits
// [batch,tokens,words], or a cache [batch,groups,places,size].
func valid(v *value, lengths []int, tokens int) *value {
	c := *v
	c.data = slices.Clone(v.data)
	axis := len(v.dims) - 2
	row := v.dims[axis+1] * v.dt.Size()
	for at := 0; at*row < len(c.data); at++ {
		place, sample := at%v.dims[axis], at/elements(v.dims[1:axis+1])
		if tokens > 1 && place >= lengths[sample] || axis == 2 && place >= lengths[sample] {
			clear(c.data[at*row : (at+1)*row])
		}
	}
	return &c
}
