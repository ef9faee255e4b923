package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

const textModel = "testdata/text.onnx"

func ofStrings(t testing.TB, list []string, dims ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.OfStrings(list, dims...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Release() })
	return x
}

// A model with text runs in what its plan promises: strings of any length, in
// the width that they were given in.
func TestText(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, textModel)
	if in, out := m.Inputs()[0].String(), m.Outputs()[0].String(); in != "words: string[n]" || out != "shouted: string[?]" {
		t.Errorf("got %q and %q, want strings", in, out)
	}
	s := modeltest.Session(t, m)
	for _, tc := range []struct{ words, want []string }{
		{[]string{"HELLO", "to", "the", "Ärzte"}, []string{"hello!", "ärzte!"}},
		{[]string{"the", "TO"}, []string{"!"}},
		{[]string{"", "a"}, []string{"!", "a!"}},
		{nil, []string{"!"}},
		{[]string{"a b", strings.Repeat("ⱯÉ", 300)}, []string{"a b!", strings.Repeat("ɐé", 300) + "!"}},
	} {
		x := ofStrings(t, tc.words, len(tc.words))
		p, err := s.Plan(context.Background(), tenure.Shapes{"words": x.Shape().Sizes()})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(p.Unpromised, func(u plan.Unpromised) bool { return u.Value == "kept" }) {
			t.Errorf("%q: got unpromised %v, want a bound for the words that are kept", tc.words, p.Unpromised)
		}
		for range 3 {
			out, err := s.Run(context.Background(), tenure.Inputs{"words": x})
			if err != nil {
				t.Fatal(err)
			}
			got, err := tensor.Strings(out["shouted"])
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%q: got %q (%v), want %q", tc.words, got, err, tc.want)
			}
			if err := out.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}

// movedText are operators that move strings: nodes on x, of [2,1,3], and for
// some on y, of the same sizes.
var movedText = []struct {
	op      string
	in      []string
	outputs int
	attrs   []onnxtest.Message
}{
	{"Identity", []string{"x"}, 1, nil},
	{"Reshape", []string{"x", "shape"}, 1, nil},
	{"Flatten", []string{"x"}, 1, nil},
	{"Flatten", []string{"x"}, 1, []onnxtest.Message{onnxtest.Int("axis", 0)}},
	{"Flatten", []string{"y"}, 1, []onnxtest.Message{onnxtest.Int("axis", -1)}},
	{"Flatten", []string{"y"}, 1, []onnxtest.Message{onnxtest.Int("axis", 3)}},
	{"Squeeze", []string{"x"}, 1, nil},
	{"Squeeze", []string{"x", "back"}, 1, nil},
	{"Unsqueeze", []string{"x", "ends"}, 1, nil},
	{"Transpose", []string{"x"}, 1, nil},
	{"Transpose", []string{"x"}, 1, []onnxtest.Message{onnxtest.Ints("perm", 2, 0, 1)}},
	{"Concat", []string{"x", "y", "x"}, 1, []onnxtest.Message{onnxtest.Int("axis", -1)}},
	{"Concat", []string{"y", "x"}, 1, []onnxtest.Message{onnxtest.Int("axis", 0)}},
	{"Split", []string{"x"}, 3, []onnxtest.Message{onnxtest.Int("axis", -1), onnxtest.Int("num_outputs", 3)}},
	{"Split", []string{"x", "parts"}, 2, []onnxtest.Message{onnxtest.Int("axis", 2)}},
	{"Gather", []string{"x", "picks"}, 1, []onnxtest.Message{onnxtest.Int("axis", -1)}},
	{"Gather", []string{"x", "one"}, 1, nil},
	{"Slice", []string{"x", "one", "three"}, 1, nil},
	{"Slice", []string{"x", "three", "one", "back", "back"}, 1, nil},
	{"Where", []string{"mask", "x", "y"}, 1, nil},
	{"Where", []string{"mask", "y", "x"}, 1, nil},
	{"Expand", []string{"x", "more"}, 1, nil},
	{"Tile", []string{"y", "more"}, 1, nil},
	{"Shape", []string{"x"}, 1, nil},
	{"Shape", []string{"x"}, 1, []onnxtest.Message{onnxtest.Int("start", -2), onnxtest.Int("end", -1)}},
	{"Size", []string{"y"}, 1, nil},
}

// Strings move as their numbers do: each node is in the model twice, on
// strings and on the number that each of them has.
func TestTextMoves(t *testing.T) {
	memorytest.Check(t)
	list := []string{"zero", "", "two", "größe", "4", "fünf", "x", "seven", strings.Repeat("long ", 9), "\xff", "ten", "a b"}
	numberOf := map[string]int64{}
	var numbers []int64
	for i, s := range list {
		numberOf[s], numbers = int64(i), append(numbers, int64(i))
	}
	for _, mv := range movedText {
		g := &onnxtest.Graph{}
		for _, name := range []string{"x", "y"} {
			g.Input(name, onnxtest.String, 2, 1, 3)
			g.Input(name+"#", onnxtest.I64, 2, 1, 3)
		}
		for name, list := range map[string][]int64{"shape": {-1, 2}, "back": {-2}, "ends": {-1, 0}, "parts": {1, 2}, "picks": {2, 0, -1, 1}, "one": {1}, "three": {3}, "more": {2, 3, 1}} {
			g.Ints(name, list...)
		}
		g.Weight("mask", onnxtest.Bool, []byte{1, 0, 1}, 3)
		numbered := slices.Clone(mv.in)
		for i, name := range mv.in {
			if name == "x" || name == "y" {
				numbered[i] += "#"
			}
		}
		var out, outNumbers []string
		for i := range mv.outputs {
			out, outNumbers = append(out, fmt.Sprint("out", i)), append(outNumbers, fmt.Sprint("numbers", i))
			g.Output(out[i])
			g.Output(outNumbers[i])
		}
		g.Node(mv.op, mv.in, out, mv.attrs...)
		g.Node(mv.op, numbered, outNumbers, mv.attrs...)
		m, err := tenure.LoadBytes(g.File())
		if err != nil {
			t.Errorf("%s: %v", mv.op, err)
			continue
		}
		got := modeltest.Run(t, modeltest.Session(t, m), tenure.Inputs{"x": ofStrings(t, list[:6], 2, 1, 3), "y": ofStrings(t, list[6:], 2, 1, 3),
			"x#": modeltest.Of(t, numbers[:6], 2, 1, 3), "y#": modeltest.Of(t, numbers[6:], 2, 1, 3)})
		for i := range out {
			if diff := movesDiffer(got[out[i]], got[outNumbers[i]], numberOf); diff != "" {
				t.Errorf("%s(%s): output %d: %s", mv.op, strings.Join(mv.in, ", "), i, diff)
			}
		}
		if err := errors.Join(got.Release(), m.Close()); err != nil {
			t.Error(err)
		}
	}
}

// movesDiffer compares strings, or results that were computed from their
// sizes, with numbers.
func movesDiffer(got, want *tensor.Tensor, numberOf map[string]int64) string {
	numbers, err := tensor.Values[int64](want)
	if err != nil {
		return err.Error()
	}
	have, dims := []int64(nil), got.Shape().Sizes()
	if got.DType() == dtype.I64 {
		have, err = tensor.Values[int64](got)
	} else {
		var list []string
		list, err = tensor.Strings(got)
		for _, s := range list {
			have = append(have, numberOf[s])
		}
		dims = dims[:len(dims)-1]
	}
	if err != nil || !slices.Equal(have, numbers) || !slices.Equal(dims, want.Shape().Sizes()) {
		return fmt.Sprintf("got %v %v (%v), want %v %v", have, dims, err, numbers, want.Shape())
	}
	return ""
}

// Strings whose number depends on data are moved like others.
func TestTextOfUnknownSize(t *testing.T) {
	memorytest.Check(t)
	g := &onnxtest.Graph{}
	g.Input("words", onnxtest.String, "n")
	g.Input("others", onnxtest.String, 2)
	g.Ints("column", -1, 1)
	g.Ints("picks", 0, -1)
	g.Node("StringNormalizer", []string{"words"}, []string{"kept"}, onnxtest.Texts("stopwords", "a", "the"))
	g.Node("Concat", []string{"kept", "others"}, []string{"all"}, onnxtest.Int("axis", 0))
	g.Node("Gather", []string{"all", "picks"}, []string{"ends"})
	g.Node("Reshape", []string{"all", "column"}, []string{"rows"})
	g.Node("Equal", []string{"rows", "others"}, []string{"equal"})
	g.Node("Size", []string{"all"}, []string{"size"})
	for _, name := range []string{"rows", "ends", "equal", "size"} {
		g.Output(name)
	}
	m, err := tenure.LoadBytes(g.File())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	out := modeltest.Run(t, modeltest.Session(t, m), tenure.Inputs{"words": ofStrings(t, []string{"the", "word", "A", "longest word"}, 4), "others": ofStrings(t, []string{"x", "word"}, 2)})
	defer out.Release()
	rows, err := tensor.Strings(out["rows"])
	if want := []string{"word", "longest word", "x", "word"}; err != nil || !slices.Equal(rows, want) || !slices.Equal(out["rows"].Shape().Sizes(), []int{4, 1, 12}) {
		t.Errorf("rows: got %q in %s (%v), want %q", rows, out["rows"].Shape(), err, want)
	}
	ends, err := tensor.Strings(out["ends"])
	if want := []string{"word", "word"}; err != nil || !slices.Equal(ends, want) {
		t.Errorf("ends: got %q (%v), want %q", ends, err, want)
	}
	equal, err := tensor.Values[bool](out["equal"])
	if want := []bool{false, true, false, false, true, false, false, true}; err != nil || !slices.Equal(equal, want) {
		t.Errorf("equal: got %v (%v), want %v", equal, err, want)
	}
	if n, err := tensor.At[int64](out["size"]); n != 4 || err != nil {
		t.Errorf("size: got %d (%v), want 4", n, err)
	}
}

// Words are counted without their strings: a token takes as many bytes as the
// text that it is part of, so the tokens of a long text would take its length
// squared.
func TestCountedWords(t *testing.T) {
	memorytest.Check(t)
	g := &onnxtest.Graph{}
	g.Input("texts", onnxtest.String, "n", 1)
	g.Ints("row", 0, -1)
	g.Ints("middle", 1)
	g.Node("StringNormalizer", []string{"flat"}, []string{"low"}, onnxtest.Text("case_change_action", "LOWER"))
	g.Node("Reshape", []string{"texts", "all"}, []string{"flat"})
	g.Ints("all", -1)
	g.Node("com.microsoft::Tokenizer", []string{"low"}, []string{"tokens"}, onnxtest.Int("mark", 0), onnxtest.Int("mincharnum", 1), onnxtest.Text("pad_value", "#"), onnxtest.Text("tokenexp", "[a-z]+"))
	g.Node("Unsqueeze", []string{"tokens", "middle"}, []string{"apart"})
	g.Node("Squeeze", []string{"apart", "middle"}, []string{"near"})
	g.Node("Reshape", []string{"near", "row"}, []string{"rows"})
	g.Node("Identity", []string{"rows"}, []string{"same"})
	g.Node("Flatten", []string{"same"}, []string{"matrix"})
	counts := []onnxtest.Message{onnxtest.Text("mode", "TF"), onnxtest.Int("min_gram_length", 1), onnxtest.Int("max_gram_length", 2), onnxtest.Int("max_skip_count", 0),
		onnxtest.Ints("ngram_counts", 0, 2), onnxtest.Ints("ngram_indexes", 0, 2, 1), onnxtest.Texts("pool_strings", "dog", "fox", "fox", "dog")}
	g.Node("TfIdfVectorizer", []string{"matrix"}, []string{"counts"}, counts...)
	g.Output("counts")
	m, err := tenure.LoadBytes(g.File())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := modeltest.Session(t, m)
	long := strings.Repeat("Fox, dog; ", 1000)
	x := ofStrings(t, []string{"the dog", "", long}, 3, 1)
	out := modeltest.Run(t, s, tenure.Inputs{"texts": x})
	defer out.Release()
	got, err := tensor.Values[float32](out["counts"])
	if want := []float32{1, 0, 0, 0, 0, 0, 1000, 1000, 1000}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	p, err := s.Plan(context.Background(), tenure.Shapes{"texts": x.Shape().Sizes()})
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(16 * 3 * len(long)); p.ArenaBytes > most { // an index of eight bytes for each character, and the texts
		t.Errorf("got an arena of %d bytes, want %d at most", p.ArenaBytes, most)
	}
}

// Errors name inputs that are not text, and texts where numbers are wanted.
func TestTextFaults(t *testing.T) {
	memorytest.Check(t)
	numbers := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	text := modeltest.Session(t, modeltest.Load(t, textModel))
	word := ofStrings(t, []string{"a"}, 1)
	matrix := ofStrings(t, []string{"a"}, 1, 1)
	width, err := tensor.Zeros[uint8](2, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer width.Release()
	for _, tc := range []struct {
		s    *tenure.Session
		in   tenure.Inputs
		want string
		kind error
	}{
		{numbers, tenure.Inputs{"x": word, "state": word}, `got u8[1,1], want f32[n,64]`, tenure.ErrDType},
		{text, tenure.Inputs{"words": modeltest.Of(t, []float32{1}, 1)}, `input "words": got f32[1], want string[n] as u8[n,"words.width"] (see tensor.OfStrings)`, tenure.ErrDType},
		{text, tenure.Inputs{"words": matrix}, `input "words": got u8[1,1,1], want string[n]`, tenure.ErrShape},
		{text, tenure.Inputs{"words": width}, `input "words": got u8[2,0], want string[n]`, tenure.ErrShape},
	} {
		_, err := tc.s.Run(context.Background(), tc.in)
		if !errors.Is(err, tenure.ErrInput) || !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q of kind %v", err, tc.want, tc.kind)
		}
	}
	_, err = text.Plan(context.Background(), nil)
	if err == nil || !strings.Contains(err.Error(), `words: string[n]`) {
		t.Errorf("got %v, want the input named", err)
	}
}
