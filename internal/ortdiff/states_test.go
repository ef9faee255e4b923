package ortdiff_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// The sizes of a model with an encoder's half: as exporters write the decoders
// of speech and of translation.
const (
	speechLayers, speechHeads, speechSize = 2, 2, 8
	speechWidth, speechWords              = speechHeads * speechSize, 11
	speechPlaces                          = 24
)

// Symbols for its sizes, beside those of a decoder.
const (
	frames = -12 - iota
	pastFrames
)

// speech is such a model under way.
type speech struct {
	*drawer
	caches dtype.DType // of keys and values that stay
	tables map[string]string
}

// half is a graph of it: the model, or a region of a branch.
type half struct {
	*speech
	*graph
	prefix string
}

// put adds a node and returns its output.
func (h *half) put(op string, in []string, attrs ...attr) string {
	name := fmt.Sprintf("%s%s %d", h.prefix, op, len(h.nodes))
	h.nodes = append(h.nodes, &node{op: op, in: in, out: []string{name}, attrs: attrs})
	return name
}

// weight is a constant of the model, which both regions read.
func (s *speech) weight(name string, dims ...int) string {
	if s.tables[name] == "" {
		list := make([]float64, elements(dims))
		for i := range list {
			list[i] = s.NormFloat64() / 3
		}
		s.tables[name] = s.value(dtype.F32, dims, encodeFloats(dtype.F32, list...), true).name
	}
	return s.tables[name]
}

func (s *speech) list(dims []int, list ...int64) string {
	return s.value(dtype.I64, dims, encodeInts(dtype.I64, list...), true).name
}

// heads makes [batch,heads,rows,size] of x times a weight.
func (h *half) heads(x, name string) string {
	x = h.put("MatMul", []string{x, h.weight(name, speechWidth, speechWidth)})
	x = h.put("Reshape", []string{x, h.list([]int{4}, 0, 0, speechHeads, speechSize)})
	return h.put("Transpose", []string{x}, attr{"perm", []int64{0, 2, 1, 3}})
}

// size is the size of x along an axis.
func (h *half) size(x string, axis int64) string {
	x = h.put("Shape", []string{x})
	return h.put("Gather", []string{x, h.list([]int{}, axis)}, attr{"axis", int64(0)})
}

func (h *half) cast(x string, to dtype.DType) string {
	return h.put("Cast", []string{x}, attr{"to", int64(to.ONNX())})
}

// attend is the attention of heads q over k and v, which a mask is added to.
func (h *half) attend(x, q, k, v, mask, name string) string {
	if h.caches != dtype.F32 {
		k, v = h.cast(k, dtype.F32), h.cast(v, dtype.F32)
	}
	t := h.put("Transpose", []string{k}, attr{"perm", []int64{0, 1, 3, 2}})
	s := h.put("MatMul", []string{q, t})
	if mask != "" {
		s = h.put("Add", []string{s, mask})
	}
	a := h.put("MatMul", []string{h.put("Softmax", []string{s}, attr{"axis", int64(-1)}), v})
	a = h.put("Transpose", []string{a}, attr{"perm", []int64{0, 2, 1, 3}})
	a = h.put("Reshape", []string{a, h.list([]int{3}, 0, 0, speechWidth)})
	return h.put("Add", []string{x, h.put("MatMul", []string{a, h.weight(name, speechWidth, speechWidth)})})
}

// mask hides the keys behind each query, of which total are there.
func (h *half) mask(past, total string) string {
	zero, one := h.list([]int{}, 0), h.list([]int{}, 1)
	keys := h.put("Range", []string{zero, total, one})
	queries := h.put("Unsqueeze", []string{h.put("Range", []string{past, total, one}), h.list([]int{1}, 1)})
	seen := h.put("LessOrEqual", []string{keys, queries})
	none, all := h.value(dtype.F32, []int{}, encodeFloats(dtype.F32, -1e9), true).name, h.value(dtype.F32, []int{}, encodeFloats(dtype.F32, 0), true).name
	m := h.put("Where", []string{seen, all, none})
	return h.put("Unsqueeze", []string{m, h.list([]int{2}, 0, 1)})
}

func pastName(layer int, part string) string {
	return fmt.Sprintf("past_key_values.%d.%s", layer, part)
}

// layers are the layers with a past or without, and the words. It returns what
// the caches are behind the run: by layer the decoder's key and value, and the
// encoder's. The encoder's half grows by its frames if it streams.
func (h *half) layers(past, streams bool) (logits string, caches []string) {
	tokens := h.size("input_ids", 1)
	before := h.list([]int{}, 0)
	if past {
		before = h.size(pastName(0, "decoder.key"), 2)
	}
	total := h.put("Add", []string{before, tokens})
	axes := h.list([]int{1}, 0)
	places := h.put("Slice", []string{h.weight("places", speechPlaces, speechWidth), h.put("Unsqueeze", []string{before, axes}), h.put("Unsqueeze", []string{total, axes}), axes})
	x := h.put("Add", []string{h.put("Gather", []string{h.weight("words", speechWords, speechWidth), "input_ids"}), places})
	mask := h.mask(before, total)
	for layer := range speechLayers {
		name := func(s string) string { return fmt.Sprint(layer, s) }
		var kept []string
		for _, part := range []string{"decoder.key", "decoder.value", "encoder.key", "encoder.value"} {
			from, grows := x, past
			if strings.HasPrefix(part, "encoder") {
				from, grows = "encoder_hidden_states", streams
			}
			if past && !streams && from != x {
				kept = append(kept, pastName(layer, part))
				continue
			}
			rows := h.heads(from, name(part))
			if h.caches != dtype.F32 {
				rows = h.cast(rows, h.caches)
			}
			if grows {
				rows = h.put("Concat", []string{pastName(layer, part), rows}, attr{"axis", int64(2)})
			}
			kept = append(kept, rows)
		}
		x = h.attend(x, h.heads(x, name("q")), kept[0], kept[1], mask, name("o"))
		x = h.attend(x, h.heads(x, name("cross q")), kept[2], kept[3], "", name("cross o"))
		caches = append(caches, kept...)
	}
	return h.put("MatMul", []string{x, h.weight("head", speechWidth, speechWords)}), caches
}

// outputsOf are the names of the outputs, in the order of layers.
func speechOutputs() (list []string) {
	list = []string{"logits"}
	for layer := range speechLayers {
		for _, part := range []string{"decoder.key", "decoder.value", "encoder.key", "encoder.value"} {
			list = append(list, fmt.Sprintf("present.%d.%s", layer, part))
		}
	}
	return list
}

// drawSpeech makes a model whose two graphs an exporter has merged into one
// branch, or one whose encoder's half grows as well. The region with a past
// returns dummies for the encoder's half, or the half itself.
func drawSpeech(r *rand.Rand, caches dtype.DType, merged, dummies bool) *model {
	s := &speech{drawer: &drawer{Rand: r, m: &model{opset: 18}}, caches: caches, tables: map[string]string{}}
	input := func(name string, dt dtype.DType, dims ...int) {
		s.m.values = append(s.m.values, &value{name: name, dt: dt, dims: dims})
	}
	input("input_ids", dtype.I64, batchSize, sequenceLength)
	input("encoder_hidden_states", dtype.F32, batchSize, frames, speechWidth)
	for layer := range speechLayers {
		for _, part := range []string{"decoder.key", "decoder.value", "encoder.key", "encoder.value"} {
			rows := pastLength
			if strings.HasPrefix(part, "encoder") {
				rows = pastFrames
			}
			input(pastName(layer, part), caches, batchSize, speechHeads, rows, speechSize)
		}
	}
	names := speechOutputs()
	for _, name := range names {
		dt, dims := caches, []int{batchSize, speechHeads, -1, speechSize}
		if name == "logits" {
			dt, dims = dtype.F32, []int{batchSize, sequenceLength, speechWords}
		}
		s.m.graph.outputs = append(s.m.graph.outputs, typed{name, dt, dims})
	}
	if !merged {
		h := &half{s, &s.m.graph, ""}
		logits, list := h.layers(true, true)
		for i, from := range append([]string{logits}, list...) {
			h.nodes = append(h.nodes, &node{op: "Identity", in: []string{from}, out: []string{names[i]}})
		}
		return s.m
	}
	input("use_cache_branch", dtype.Bool, 1)
	var regions [2]*graph
	for i, past := range []bool{true, false} {
		h := &half{s, new(graph), fmt.Sprintf("%v ", past)}
		logits, list := h.layers(past, false)
		for k, from := range append([]string{logits}, list...) {
			if past && dummies && strings.Contains(names[k], "encoder") {
				none := &value{dt: caches, dims: []int{0, speechHeads, 1, speechSize}}
				h.nodes = append(h.nodes, &node{op: "Constant", out: []string{h.prefix + names[k]}, attrs: []attr{{"value", none}}})
			} else {
				h.nodes = append(h.nodes, &node{op: "Identity", in: []string{from}, out: []string{h.prefix + names[k]}})
			}
			dt := caches
			if k == 0 {
				dt = dtype.F32
			}
			h.outputs = append(h.outputs, typed{name: h.prefix + names[k], dt: dt})
		}
		regions[i] = h.graph
	}
	s.m.graph.nodes = append(s.m.graph.nodes, &node{op: "If", in: []string{"use_cache_branch"}, out: names,
		attrs: []attr{{"then_branch", regions[0]}, {"else_branch", regions[1]}}})
	return s.m
}

// speaking runs a model in ONNX Runtime, which gets the outputs of each run as
// inputs of the next, and in a States.
type speaking struct {
	*testing.T
	*rand.Rand
	ref    *reference
	file   []byte
	model  *tenure.Model
	states *tenure.States
	caches dtype.DType
	merged bool
	past   map[string]*value
	runs   int
}

func newSpeaking(t *testing.T, ref *reference, caches dtype.DType, merged, dummies bool, opts ...tenure.StatesOption) *speaking {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 13))
	s := &speaking{T: t, Rand: r, ref: ref, file: drawSpeech(r, caches, merged, dummies).encode(), caches: caches, merged: merged, past: map[string]*value{}}
	m, err := tenure.LoadBytes(s.file, tenure.WithStates())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	session, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	if s.states, err = session.NewStates(4, opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.states.Close() })
	s.model = m
	for _, name := range speechOutputs()[1:] {
		rows, data := 0, []byte(nil)
		if merged && strings.Contains(name, "encoder") {
			rows, data = 1, make([]byte, speechHeads*speechSize*caches.Size()) // that no region reads
		}
		s.past[name] = &value{name: strings.Replace(name, "present", "past_key_values", 1), dt: caches, dims: []int{1, speechHeads, rows, speechSize}, data: data}
	}
	return s
}

// draw gives the inputs of a run of the caller.
func (s *speaking) draw(tokens, frames int) []*value {
	ids, sounds := make([]int64, tokens), make([]float64, frames*speechWidth)
	for i := range ids {
		ids[i] = int64(s.IntN(speechWords))
	}
	for i := range sounds {
		sounds[i] = s.NormFloat64()
	}
	return []*value{
		{name: "input_ids", dt: dtype.I64, dims: []int{1, tokens}, data: encodeInts(dtype.I64, ids...)},
		{name: "encoder_hidden_states", dt: dtype.F32, dims: []int{1, frames, speechWidth}, data: encodeFloats(dtype.F32, sounds...)},
	}
}

func (s *speaking) inputs(list []*value) (in tenure.Inputs, release func()) {
	in = tenure.Inputs{}
	for _, v := range list {
		x, err := v.tensor()
		if err != nil {
			s.Fatal(err)
		}
		in[v.name] = x
	}
	return in, func() {
		for _, x := range in {
			x.Tensor().Release()
		}
	}
}

// both runs both and compares the words.
func (s *speaking) both(list []*value) {
	s.Helper()
	all := slices.Clone(list)
	for _, v := range s.past {
		all = append(all, v)
	}
	if s.merged {
		all = append(all, &value{name: "use_cache_branch", dt: dtype.Bool, dims: []int{1}, data: []byte{byte(min(s.runs, 1))}})
	}
	want, err := s.ref.run(s.file, all)
	if err != nil {
		s.Fatalf("run %d: ONNX Runtime: %v", s.runs, err)
	}
	in, release := s.inputs(list)
	defer release()
	got, err := s.states.Run(context.Background(), in)
	if err != nil {
		s.Fatalf("run %d: %v", s.runs, err)
	}
	defer got.Release()
	tol := tolerance{32, 32, 0, ""}
	if s.caches != dtype.F32 { // a number between two of them is rounded to either
		tol.rel, tol.abs = tol.rel*(1<<14), tol.abs*(1<<14)
	}
	if diff := tol.apart(valueOf("logits", got["logits"], false), want["logits"], scale(want["logits"])); diff != "" {
		s.Fatalf("run %d: %.2000s", s.runs, diff)
	}
	if copied, err := s.states.Copied(); err != nil || len(copied) > 0 {
		s.Errorf("run %d: got copies %v, %v, want none", s.runs, copied, err)
	}
	for name, v := range s.past {
		if present := want[name]; elements(present.dims) > 0 {
			v.dims, v.data = present.dims, present.data
		}
	}
	s.runs++
}

// fail ends a run behind each of its calls but the last.
func (s *speaking) fail(list []*value) {
	s.Helper()
	in, release := s.inputs(list)
	defer release()
	calls := 0
	whole, err := s.states.Fork()
	if err != nil {
		s.Fatal(err)
	}
	out, err := whole.Run(context.Background(), in, tenure.Watch(func(*ir.Call, time.Duration) { calls++ }))
	if err := errors.Join(err, out.Release(), whole.Close()); err != nil {
		s.Fatal(err)
	}
	ended, before := errors.New("ended"), s.states.Len()
	for after := range calls - 1 {
		ctx, cancel := context.WithCancelCause(context.Background())
		n := 0
		_, err := s.states.Run(ctx, in, tenure.Watch(func(*ir.Call, time.Duration) {
			if n++; n > after {
				cancel(ended)
			}
		}))
		cancel(nil)
		if !errors.Is(err, ended) || errors.Is(err, tenure.ErrPartlyWritten) || s.states.Len() != before {
			s.Fatalf("behind call %d of %d: got %d rows, error %v, want %d, and that nothing is lost", after, calls, s.states.Len(), err, before)
		}
	}
}

// TestMergedSpeech runs decoders of the form that exporters merge, with the
// halves of an encoder, against ONNX Runtime, through growth and failures.
func TestMergedSpeech(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16} {
		for _, dummies := range []bool{true, false} {
			t.Run(fmt.Sprint(dt, " dummies ", dummies), func(t *testing.T) {
				s := newSpeaking(t, ref, dt, true, dummies, tenure.WithGrowth(32))
				for i, info := range s.model.States() {
					want := []tenure.StateKind{tenure.StateAppended, tenure.StateAppended, tenure.StateHeld, tenure.StateHeld}[i%4]
					if info.Kind != want {
						t.Fatalf("got %s, want one that is %s", info, want)
					}
				}
				sound := s.draw(1, 7)[1]
				for i, n := range []int{3, 1, 1, 2, 1, 5, 1} {
					list := s.draw(n, 1)
					list[1] = sound
					if s.both(list); i == 1 || i == 5 {
						s.fail(list)
					}
				}
				if s.states.Len() != 14 {
					t.Errorf("got %d rows, want 14", s.states.Len())
				}
			})
		}
	}
}

// TestTwoLengths grows the halves of an encoder and of a decoder, by other
// numbers of rows in each run, against ONNX Runtime.
func TestTwoLengths(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	for _, dt := range []dtype.DType{dtype.F32, dtype.BF16} {
		t.Run(dt.String(), func(t *testing.T) {
			s := newSpeaking(t, ref, dt, false, false, tenure.WithGrowth(128))
			for _, info := range s.model.States() {
				if info.Kind != tenure.StateAppended {
					t.Fatalf("got %s, want one that is appended", info)
				}
			}
			for i, n := range [][2]int{{2, 5}, {1, 3}, {1, 1}, {3, 9}, {1, 2}, {2, 30}, {1, 1}} {
				list := s.draw(n[0], n[1])
				if s.both(list); i == 2 || i == 5 {
					s.fail(list)
				}
			}
			if s.states.Len() != 51 {
				t.Errorf("got %d rows of the longer half, want 51", s.states.Len())
			}
		})
	}
}
