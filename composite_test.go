package tenure_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// compositeSession makes a session of a model that is given as text.
func compositeSession(t *testing.T, text string) *tenure.Session {
	t.Helper()
	return modeltest.SessionOf(t, wiretest.ModelText(t, text))
}

// shapesOf returns the types and elements of a sequence as text.
func shapesOf(t testing.TB, s tenure.Sequence) string {
	t.Helper()
	var parts []string
	for _, x := range s {
		values, err := tensor.Float64s(x)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprintf("%s%s%v", x.DType(), x.Shape(), values))
	}
	return strings.Join(parts, " ")
}

// sequenceOf returns the elements of an output, until the test ends.
func sequenceOf(t *testing.T, out tenure.Outputs, name string) tenure.Sequence {
	t.Helper()
	s, err := out.Sequence(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Release() })
	return s
}

// A case runs a model once for each set of inputs, all in one session: sizes
// and lengths differ from run to run.
var compositeCases = []struct {
	name, model string
	runs        []compositeRun
}{
	{"elements of any shape", `
		opset 17
		input s sequence(f32)
		input at i64[]
		x = SequenceAt(s, at)
		n = SequenceLength(s)
		y = SequenceErase(s, at)
		output x f32
		output n i64[]
		output y sequence(f32)`, []compositeRun{
		{"s: [1 2] [[3 4] [5 6]] 7; at: i1", "x: f32[2,2][3 4 5 6]; n: i64[][3]; y: f32[2][1 2] f32[][7]"},
		{"s: [1 2] [[3 4] [5 6]] 7; at: i-1", "x: f32[][7]; n: i64[][3]; y: f32[2][1 2] f32[2,2][3 4 5 6]"},
		{"s: [1]; at: i0", "x: f32[1][1]; n: i64[][1]; y:"},
		{"s: [1]; at: i1", "error: gather"},
		{"s: [1]; at: i-2", "error: gather"},
		{"s:; at: i0", "error: gather"},
	}},
	{"insertion", `
		opset 17
		input s sequence(f32[n])
		input x f32[m]
		input at i64[]
		y = SequenceInsert(s, x, at)
		z = SequenceInsert(y, x)
		output y sequence(f32)
		output z sequence(f32)`, []compositeRun{
		{"s: [1 2] [3]; x: [9]; at: i0", "y: f32[1][9] f32[2][1 2] f32[1][3]; z: f32[1][9] f32[2][1 2] f32[1][3] f32[1][9]"},
		{"s: [1 2] [3]; x: [9]; at: i2", "y: f32[2][1 2] f32[1][3] f32[1][9]; z: f32[2][1 2] f32[1][3] f32[1][9] f32[1][9]"},
		{"s: [1 2] [3]; x: [8 9]; at: i-1", "y: f32[2][1 2] f32[2][8 9] f32[1][3]; z: f32[2][1 2] f32[2][8 9] f32[1][3] f32[2][8 9]"},
		{"s:; x: [8 9]; at: i0", "y: f32[2][8 9]; z: f32[2][8 9] f32[2][8 9]"},
		{"s: [1]; x: [9]; at: i2", "error: gather"},
		{"s: [1]; x: [9]; at: i-2", "error: gather"},
		{"s: [[1]]; x: [9]; at: i0", "error: input \"s\": element 0: got f32[1,1], want f32[n]"},
		{"s: i1; x: [9]; at: i0", "error: element 0: got i64[], want f32"},
	}},
	{"joined along the first axis", `
		opset 17
		input s sequence(f32[n,k])
		y = ConcatFromSequence(s) {axis = 0}
		z = ConcatFromSequence(s) {axis = -2}
		output y f32[p,k]
		output z f32[p,k]`, []compositeRun{
		{"s: [[1 2]] [[3 4] [5 6]]", "y: f32[3,2][1 2 3 4 5 6]; z: f32[3,2][1 2 3 4 5 6]"},
		{"s: [[1 2 3]]", "y: f32[1,3][1 2 3]; z: f32[1,3][1 2 3]"},
		{"s: [[1 2]] [[3 4 5]]", "error: reshape"},
		{"s:", "error: gather"},
	}},
	{"joined along another axis", `
		opset 17
		input s sequence(f32[n,k])
		y = ConcatFromSequence(s) {axis = 1}
		output y f32[n,p]`, []compositeRun{
		{"s: [[1] [2]] [[3 4] [5 6]]", "y: f32[2,3][1 3 4 2 5 6]"},
		{"s: [[1] [2]]", "y: f32[2,1][1 2]"},
		{"s: [[1] [2]] [[3 4]]", "error: concat"},
	}},
	{"stacked", `
		opset 17
		input s sequence(f32[n])
		y = ConcatFromSequence(s) {axis = 0, new_axis = 1}
		z = ConcatFromSequence(s) {axis = -1, new_axis = 1}
		output y f32[p,n]
		output z f32[n,p]`, []compositeRun{
		{"s: [1 2] [3 4] [5 6]", "y: f32[3,2][1 2 3 4 5 6]; z: f32[2,3][1 3 5 2 4 6]"},
		{"s: [1 2] [3]", "error: "},
	}},
	{"split", `
		opset 17
		input x f32[n,k]
		input each i64[]
		rows = SplitToSequence(x) {axis = 0, keepdims = 0}
		columns = SplitToSequence(x) {axis = 1, keepdims = 0}
		kept = SplitToSequence(x) {axis = 1, keepdims = 1}
		parts = SplitToSequence(x, each) {axis = 0}
		blocks = SplitToSequence(x, each) {axis = -1}
		output rows sequence(f32[k])
		output columns sequence(f32[n])
		output kept sequence(f32[n,j])
		output parts sequence(f32[m,k])
		output blocks sequence(f32[n,m])`, []compositeRun{
		{"x: [[1 2 3] [4 5 6]]; each: i2", "rows: f32[3][1 2 3] f32[3][4 5 6]; columns: f32[2][1 4] f32[2][2 5] f32[2][3 6]; " +
			"kept: f32[2,1][1 4] f32[2,1][2 5] f32[2,1][3 6]; parts: f32[2,3][1 2 3 4 5 6]; blocks: f32[2,2][1 2 4 5] f32[2,1][3 6]"},
		{"x: [[1] [2] [3]]; each: i2", "rows: f32[1][1] f32[1][2] f32[1][3]; columns: f32[3][1 2 3]; kept: f32[3,1][1 2 3]; " +
			"parts: f32[2,1][1 2] f32[1,1][3]; blocks: f32[3,1][1 2 3]"},
	}},
	{"split by sizes", `
		opset 17
		input x f32[n,2]
		input sizes i64[m]
		input columns i64[k]
		parts = SplitToSequence(x, sizes) {axis = 0}
		blocks = SplitToSequence(x, columns) {axis = 1}
		output parts sequence(f32[p,2])
		output blocks sequence(f32[n,p])`, []compositeRun{
		{"x: [[1 2] [3 4] [5 6]]; sizes: [i1 i2]; columns: [i1 i1]", "parts: f32[1,2][1 2] f32[2,2][3 4 5 6]; blocks: f32[3,1][1 3 5] f32[3,1][2 4 6]"},
		{"x: [[1 2] [3 4] [5 6]]; sizes: [i0 i3]; columns: [i2]", "parts: f32[0,2][] f32[3,2][1 2 3 4 5 6]; blocks: f32[3,2][1 2 3 4 5 6]"},
		{"x: [[1 2] [3 4] [5 6]]; sizes: [i1 i1]; columns: [i2]", "error: reshape"},
	}},
	{"mapped", `
		opset 17
		input s sequence(f32[n])
		input k f32[1]
		graph body
		  input a f32[n]
		  input b f32[1]
		  twice = Add(a, a)
		  c = Mul(twice, b)
		  d = Shape(a)
		  output c f32[n]
		  output d i64[1]
		end
		y, z = SequenceMap(s, k) {body = body}
		output y sequence(f32[n])
		output z sequence(i64[1])`, []compositeRun{
		{"s: [1 2] [3]; k: [10]", "y: f32[2][20 40] f32[1][60]; z: i64[1][2] i64[1][1]"},
		{"s:; k: [10]", "y:; z:"},
	}},
	{"collected by a loop", `
		opset 17
		input n i64[]
		init true bool[] 1
		init zero i64[1] 0
		s = SequenceEmpty()
		graph body
		  input i i64[]
		  input c bool[]
		  input so sequence(f32)
		  again = Identity(c)
		  number = Cast(i) {to = 1}
		  row = Unsqueeze(number, zero)
		  next = SequenceInsert(so, row)
		  more = SequenceInsert(next, row, zero)
		  output again bool[]
		  output more sequence(f32)
		end
		y = Loop(n, true, s) {body = body}
		z = ConcatFromSequence(y) {axis = 0}
		output y sequence(f32)
		output z f32[w]`, []compositeRun{
		{"n: i2", "y: f32[1][1] f32[1][0] f32[1][0] f32[1][1]; z: f32[4][1 0 0 1]"},
		{"n: i0", "error: gather"},
	}},
	{"branches of other lengths", `
		opset 17
		input s sequence(f32[n])
		input x f32[m]
		input c bool[]
		graph yes
		  a = SequenceInsert(s, x)
		  output a sequence(f32)
		end
		graph no
		  b = SequenceConstruct(x, x)
		  output b sequence(f32)
		end
		y = If(c) {then_branch = yes, else_branch = no}
		n = SequenceLength(y)
		output y sequence(f32)
		output n i64[]`, []compositeRun{
		{"s: [1]; x: [2 3]; c: true", "y: f32[1][1] f32[2][2 3]; n: i64[][2]"},
		{"s: [1] [1 2]; x: [2 3]; c: true", "y: f32[1][1] f32[2][1 2] f32[2][2 3]; n: i64[][3]"},
		{"s: [1]; x: [2 3]; c: false", "y: f32[2][2 3] f32[2][2 3]; n: i64[][2]"},
	}},
	{"branches of one length", `
		opset 17
		input x f32[m]
		input c bool[]
		graph yes
		  a0 = Neg(x)
		  a = SequenceConstruct(x, a0)
		  output a sequence(f32)
		end
		graph no
		  b0 = Abs(x)
		  b = SequenceConstruct(b0, x)
		  output b sequence(f32)
		end
		y = If(c) {then_branch = yes, else_branch = no}
		output y sequence(f32)`, []compositeRun{
		{"x: [1 -2]; c: true", "y: f32[2][1 -2] f32[2][-1 2]"},
		{"x: [1 -2]; c: false", "y: f32[2][1 2] f32[2][1 -2]"},
	}},
	{"optional tensor", `
		opset 18
		input o optional(f32[n])
		input x f32[n]
		h = OptionalHasElement(o)
		graph yes
		  a = OptionalGetElement(o)
		  output a f32[n]
		end
		graph no
		  b = Neg(x)
		  output b f32[n]
		end
		y = If(h) {then_branch = yes, else_branch = no}
		same = Identity(o)
		output h bool[]
		output y f32[n]
		output same optional(f32[n])`, []compositeRun{
		{"o: tensor [1 2]; x: [5 6]", "h: bool[][1]; y: f32[2][1 2]; same: f32[2][1 2]"},
		{"o: absent; x: [5 6]", "h: bool[][0]; y: f32[2][-5 -6]; same:"},
		{"o: [1]; x: [5 6]", "error: got a Sequence, want a tensor or Absent"},
	}},
	{"optional sequence", `
		opset 18
		input o optional(sequence(f32[n]))
		h = OptionalHasElement(o)
		same = Identity(o)
		output h bool[]
		output same optional(sequence(f32[n]))`, []compositeRun{
		{"o: [1 2] [3]", "h: bool[][1]; same: f32[2][1 2] f32[1][3]"},
		{"o:", "h: bool[][1]; same:"},
		{"o: absent", "h: bool[][0]; same: none"},
	}},
	{"element of an optional sequence", `
		opset 18
		input o optional(sequence(f32[n]))
		y = OptionalGetElement(o)
		output y sequence(f32[n])`, []compositeRun{
		{"o: [1 2] [3]", "y: f32[2][1 2] f32[1][3]"},
		{"o: absent", "error: gather"},
	}},
	{"inputs that are outputs", `
		opset 17
		input s sequence(f32[n])
		input o optional(sequence(f32[n]))
		n = SequenceLength(s)
		output s sequence(f32[n])
		output o optional(sequence(f32[n]))
		output n i64[]`, []compositeRun{
		{"s: [1 2] [3]; o: [4]", "s: f32[2][1 2] f32[1][3]; o: f32[1][4]; n: i64[][2]"},
		{"s: ; o: absent", "s:; o: none; n: i64[][0]"},
	}},
	{"lists known at load", `
		opset 17
		input x f32[2]
		input y f32[n,3]
		s = SequenceConstruct(x, y, x)
		output s sequence(f32)`, []compositeRun{
		{"x: [1 2]; y: [[3 4 5]]", "s: f32[2][1 2] f32[1,3][3 4 5] f32[2][1 2]"},
	}},
}

// compositeRun has inputs as text, and outputs or a part of the error.
type compositeRun struct{ in, want string }

func TestComposites(t *testing.T) {
	for _, c := range compositeCases {
		t.Run(c.name, func(t *testing.T) {
			s := compositeSession(t, c.model)
			for _, r := range c.runs {
				in, release := compositeInputs(t, r.in)
				got := resultOf(t, s, in)
				release()
				if part, ok := strings.CutPrefix(r.want, "error: "); ok {
					if !strings.HasPrefix(got, "error: ") || !strings.Contains(got, part) {
						t.Errorf("%s: got %s, want an error with %q", r.in, got, part)
					}
				} else if got != r.want {
					t.Errorf("%s: got %s, want %s", r.in, got, r.want)
				}
			}
		})
	}
}

// resultOf runs a session and returns its outputs as text.
func resultOf(t *testing.T, s *tenure.Session, in tenure.Inputs) string {
	t.Helper()
	out, err := s.Run(t.Context(), in)
	if err != nil {
		return "error: " + err.Error()
	}
	defer out.Release()
	var parts []string
	seen := map[*tenure.Composite]bool{}
	for _, info := range s.Model().Outputs() {
		name, list := info.Name, tenure.Sequence{out[info.Name]}
		if c := info.Of; c != nil {
			if seen[c] {
				continue
			}
			seen[c], name = true, c.Name
			if list, err = out.Sequence(name); err != nil {
				t.Fatal(err)
			}
			defer list.Release()
		}
		text := name + ": " + shapesOf(t, list)
		if list == nil {
			text = name + ": none"
		}
		parts = append(parts, strings.TrimSpace(text))
	}
	return strings.Join(parts, "; ")
}

// compositeInputs makes inputs of text: elements of a sequence stand side by
// side; a name with one is a tensor unless it is s or o. Elements with an i are
// i64.
func compositeInputs(t *testing.T, text string) (in tenure.Inputs, release func()) {
	t.Helper()
	in = tenure.Inputs{}
	var made tenure.Sequence
	for part := range strings.SplitSeq(text, ";") {
		name, rest, _ := strings.Cut(strings.TrimSpace(part), ":")
		rest = strings.TrimSpace(rest)
		rest, isTensor := strings.CutPrefix(rest, "tensor ")
		switch rest {
		case "absent":
			in[name] = tenure.Absent
			continue
		case "true", "false":
			x := modeltest.Must(tensor.Of([]bool{rest == "true"}))
			made, in[name] = append(made, x), x
			continue
		}
		p := &nestedParser{text: rest}
		list := tenure.Sequence{}
		for p.skip(); p.text != ""; p.skip() {
			list = append(list, p.tensor(t))
		}
		made = append(made, list...)
		if isTensor || name != "s" && name != "o" {
			in[name] = list[0]
		} else {
			in[name] = list
		}
	}
	return in, func() { made.Release() }
}

// nestedParser reads numbers in brackets.
type nestedParser struct {
	text    string
	numbers []float64
	ints    bool
}

func (p *nestedParser) skip() { p.text = strings.TrimLeft(p.text, " ") }

func (p *nestedParser) tensor(t *testing.T) *tensor.Tensor {
	t.Helper()
	p.numbers, p.ints = nil, false
	dims := p.nested(t)
	if p.ints {
		list := make([]int64, len(p.numbers))
		for i, v := range p.numbers {
			list[i] = int64(v)
		}
		return modeltest.Must(tensor.Of(list, dims...))
	}
	list := make([]float32, len(p.numbers))
	for i, v := range p.numbers {
		list[i] = float32(v)
	}
	return modeltest.Must(tensor.Of(list, dims...))
}

func (p *nestedParser) nested(t *testing.T) (dims []int) {
	p.skip()
	if !strings.HasPrefix(p.text, "[") {
		end := strings.IndexAny(p.text+" ", " ]")
		word, isInt := strings.CutPrefix(p.text[:end], "i")
		p.ints = p.ints || isInt
		var v float64
		if _, err := fmt.Sscan(word, &v); err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		p.numbers, p.text = append(p.numbers, v), p.text[end:]
		return nil
	}
	p.text = p.text[1:]
	count := 0
	for p.skip(); !strings.HasPrefix(p.text, "]"); p.skip() {
		dims = p.nested(t)
		count++
	}
	p.text = p.text[1:]
	return append([]int{count}, dims...)
}

// A loop that collects elements copies them a few times, not in every
// iteration: the list grows in its buffer.
func TestCollectingLoopGrowsInPlace(t *testing.T) {
	const elements, width = 400, 1 << 10
	m := modeltest.LoadBytes(t, wiretest.ModelText(t, `
		opset 17
		input n i64[]
		input x f32[k]
		init true bool[] 1
		s = SequenceEmpty()
		graph body
		  input i i64[]
		  input c bool[]
		  input so sequence(f32)
		  again = Identity(c)
		  first = Mul(x, number)
		  number = Cast(i) {to = 1}
		  next = SequenceInsert(so, first)
		  output again bool[]
		  output next sequence(f32)
		end
		y = Loop(n, true, s) {body = body}
		output y sequence(f32)`))
	memorytest.Check(t)
	s := modeltest.Session(t, m, tenure.WithThreads(1))
	ones := make([]float32, width)
	for i := range ones {
		ones[i] = 1
	}
	n, x := modeltest.Of(t, []int64{elements}), modeltest.Of(t, ones, width)
	memory.ResetPeak()
	out := modeltest.Run(t, s, tenure.Inputs{"n": n, "x": x})
	f := memory.Stats()
	if peak, whole := f.Of(memory.IO).Peak+f.Of(memory.Activations).Peak, int64(4*elements*width); peak > 7*whole/2 {
		t.Errorf("got a peak of %d bytes for a list of %d, want at most a buffer with room and the one before it", peak, whole)
	}
	list := sequenceOf(t, out, "y")
	if len(list) != elements {
		t.Fatalf("got %d elements, want %d", len(list), elements)
	}
	for i, e := range list {
		if v := modeltest.Values(t, e); len(v) != width || v[0] != float32(i) || v[width-1] != float32(i) {
			t.Fatalf("element %d: got %d numbers from %g on", i, len(v), v[0])
		}
	}
}

// Positions, lengths and shapes are drawn, and the model is compared with a
// list in Go.
func TestRandomSequences(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		input s sequence(f32)
		input x f32
		input at i64[]
		input out i64[]
		a = SequenceInsert(s, x, at)
		y = SequenceErase(a, out)
		output a sequence(f32)
		output y sequence(f32)`)
	rapid.Check(t, func(r *rapid.T) {
		draw := func() *tensor.Tensor {
			dims := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 4).Draw(r, "dims")
			n := 1
			for _, d := range dims {
				n *= d
			}
			return modeltest.Must(tensor.Of(rapid.SliceOfN(rapid.Float32Range(0, 9), n, n).Draw(r, "elements"), dims...))
		}
		list := tenure.Sequence{}
		for range rapid.IntRange(0, 5).Draw(r, "length") {
			list = append(list, draw())
		}
		x := draw()
		n := len(list)
		at := rapid.IntRange(-n, n).Draw(r, "at")
		erase := rapid.IntRange(-n-1, n).Draw(r, "out")
		places := []*tensor.Tensor{modeltest.Must(tensor.Of([]int64{int64(at)})), modeltest.Must(tensor.Of([]int64{int64(erase)}))}
		defer func() { _ = errors.Join(list.Release(), x.Release(), places[0].Release(), places[1].Release()) }()
		got := resultOf(t, s, tenure.Inputs{"s": list, "x": x, "at": places[0], "out": places[1]})
		whole := slices.Insert(slices.Clone(list), (at+n)%max(n, 1)+n*b2i(at == n), x)
		if at < 0 {
			whole = slices.Insert(slices.Clone(list), at+n, x)
		}
		k := (erase + n + 1) % (n + 1)
		rest := slices.Delete(slices.Clone(whole), k, k+1)
		want := strings.TrimSpace("a: "+shapesOf(t, whole)) + "; " + strings.TrimSpace("y: "+shapesOf(t, rest))
		if got != want {
			r.Fatalf("at %d, out %d: got %s, want %s", at, erase, got, want)
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A sequence of strings has elements of widths of their own.
func TestSequencesOfStrings(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		input s sequence(string[n])
		input at i64[]
		x = SequenceAt(s, at)
		y = SequenceInsert(s, x)
		output x string[n]
		output y sequence(string[n])`)
	a := modeltest.Must(tensor.OfStrings([]string{"one", "four"}, 2))
	b := modeltest.Must(tensor.OfStrings([]string{"twelve"}, 1))
	at := modeltest.Of(t, []int64{1})
	defer func() { a.Release(); b.Release() }()
	out := modeltest.Run(t, s, tenure.Inputs{"s": tenure.Sequence{a, b}, "at": at})
	if got := modeltest.Must(tensor.Strings(out["x"])); !slices.Equal(got, []string{"twelve"}) {
		t.Errorf("got %q, want the second element", got)
	}
	var got []string
	for _, x := range sequenceOf(t, out, "y") {
		got = append(got, modeltest.Must(tensor.Strings(x))...)
	}
	if want := []string{"one", "four", "twelve", "twelve"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	number := modeltest.Of(t, []int64{1}, 1)
	if _, err := s.Run(t.Context(), tenure.Inputs{"s": tenure.Sequence{number}, "at": at}); !errors.Is(err, tenure.ErrDType) || !errors.Is(err, tenure.ErrInput) {
		t.Errorf("got %v, want an error about the element type", err)
	}
}

// The result of a classifier is the keys and the matrix of its scores.
func TestMaps(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		opset "ai.onnx.ml" 3
		input x f32[n,3]
		input m map(string, f32)
		p = Softmax(x)
		y = "ai.onnx.ml"::ZipMap(p) {classlabels_strings = ["cat", "dog", "cow"]}
		v = "ai.onnx.ml"::DictVectorizer(m) {string_vocabulary = ["b", "a", "z"]}
		output y _
		output v f32[1,3]`)
	var texts []string
	for _, list := range [][]tenure.Info{s.Model().Inputs(), s.Model().Outputs()} {
		for _, info := range list {
			texts = append(texts, fmt.Sprint(info, " of ", info.Of))
		}
	}
	if got, want := strings.Join(texts, "; "), "x: f32[n,3] of no composite; m.keys: string[\"m.length\"] of m: map of string to f32; "+
		"m.values: f32[\"m.length\"] of m: map of string to f32; y.keys: string[3] of y: sequence of maps of string to f32; "+
		"y.values: f32[n,3] of y: sequence of maps of string to f32; v: f32[1,3] of no composite"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	x := modeltest.Of(t, []float32{0, 0, 0, 1000, 0, 0}, 2, 3)
	keys := modeltest.Must(tensor.OfStrings([]string{"a", "other", "b"}, 3))
	defer keys.Release()
	m := tenure.Map{Keys: keys, Values: modeltest.Of(t, []float32{1, 2, 3}, 3)}
	out := modeltest.Run(t, s, tenure.Inputs{"x": x, "m": m})
	y := modeltest.Must(out.Map("y"))
	if got := modeltest.Must(tensor.Strings(y.Keys)); !slices.Equal(got, []string{"cat", "dog", "cow"}) {
		t.Errorf("got keys %q", got)
	}
	third := float32(1) / 3
	if got := modeltest.Values(t, y.Values); !slices.Equal(got, []float32{third, third, third, 1, 0, 0}) {
		t.Errorf("got values %v", got)
	}
	if got := modeltest.Values(t, out["v"]); !slices.Equal(got, []float32{3, 1, 0}) {
		t.Errorf("got %v, want [3 1 0]", got)
	}
}

// Maps of all types go in; several of them pass through.
func TestMapsAsInputs(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		opset "ai.onnx.ml" 3
		input words map(i64, string)
		input numbers map(i64, f32)
		input many sequence(map(string, f32))
		v = "ai.onnx.ml"::DictVectorizer(words) {int64_vocabulary = [5, 7, 1, 5]}
		a = "ai.onnx.ml"::CastMap(words) {cast_to = "TO_FLOAT"}
		b = "ai.onnx.ml"::CastMap(words) {cast_to = "TO_INT64", map_form = "SPARSE", max_map = 6}
		c = "ai.onnx.ml"::CastMap(words) {cast_to = "TO_STRING"}
		d = "ai.onnx.ml"::CastMap(words) {cast_to = "TO_STRING", map_form = "SPARSE", max_map = 3}
		e = "ai.onnx.ml"::CastMap(numbers) {cast_to = "TO_INT64"}
		same = Identity(many)
		output v string[1,4]
		output a f32[1,m]
		output b i64[1,6]
		output c string[1,m]
		output d string[1,3]
		output e i64[1,k]
		output same sequence(map(string, f32))
		output many sequence(map(string, f32))`)
	text := func(list ...string) *tensor.Tensor {
		x := modeltest.Must(tensor.OfStrings(list, len(list)))
		t.Cleanup(func() { x.Release() })
		return x
	}
	many := tenure.Map{Keys: text("x", "y"), Values: modeltest.Of(t, []float32{1, 2, 3, 4, 5, 6}, 3, 2)}
	out := modeltest.Run(t, s, tenure.Inputs{
		"words":   tenure.Map{Keys: modeltest.Of(t, []int64{7, 5, -2}, 3), Values: text("-1", "2.5", "30")},
		"numbers": tenure.Map{Keys: modeltest.Of(t, []int64{3, 2}, 2), Values: modeltest.Of(t, []float32{1.5, -2.5}, 2)},
		"many":    many,
	})
	for name, want := range map[string][]string{"v": {"2.5", "-1", "", "2.5"}, "c": {"30", "2.5", "-1"}, "d": {"", "", ""}} {
		if got := modeltest.Must(tensor.Strings(out[name])); !slices.Equal(got, want) || out[name].Shape().Size(0) != 1 {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string][]float64{"a": {30, 2.5, -1}, "b": {0, 0, 0, 0, 0, 2}, "e": {-2, 1}} {
		if got := modeltest.Must(tensor.Float64s(out[name])); !slices.Equal(got, want) || out[name].Shape().Size(0) != 1 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"same", "many"} {
		m := modeltest.Must(out.Map(name))
		if keys, values := modeltest.Must(tensor.Strings(m.Keys)), modeltest.Values(t, m.Values); !slices.Equal(keys, []string{"x", "y"}) || !slices.Equal(values, []float32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%s: got %q and %v", name, keys, values)
		}
	}
	words := tenure.Map{Keys: modeltest.Of(t, []int64{1}, 1), Values: text("none")}
	numbers := tenure.Map{Keys: modeltest.Of(t, []int64{3}, 1), Values: modeltest.Of(t, []float32{1}, 1)}
	for _, tc := range []struct {
		in   tenure.Inputs
		want string
	}{
		{tenure.Inputs{"words": words, "numbers": numbers, "many": many}, `string 0: got "none", want a number`},
		{tenure.Inputs{"words": words, "numbers": numbers, "many": tenure.Sequence{}}, `input "many": got tenure.Sequence, want a Map`},
		{tenure.Inputs{"words": words, "numbers": many, "many": many}, `input "numbers.keys": got u8`},
	} {
		if _, err := s.Run(t.Context(), tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
}

// A state that is a sequence goes in and out as its parts, and may be donated.
func TestDonatedParts(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		input s sequence(f32[n])
		input x f32[n]
		y = SequenceInsert(s, x)
		output y sequence(f32[n])`)
	x := modeltest.Of(t, []float32{1, 2}, 2)
	out := modeltest.Must(s.Run(t.Context(), tenure.Inputs{"s": tenure.Sequence{}, "x": x}))
	for range 3 {
		next, err := s.Run(t.Context(), tenure.Inputs{"s.elements": out["y.elements"].Reuse(), "s.sizes": out["y.sizes"].Reuse(), "x": x})
		if err != nil {
			t.Fatal(err)
		}
		out = next
	}
	defer out.Release()
	if got, want := shapesOf(t, sequenceOf(t, out, "y")), strings.TrimSpace(strings.Repeat("f32[2][1 2] ", 4)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	sets, err := s.Bind()
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	all, err := sets.Run(t.Context(), out["y.elements"], out["y.sizes"], x)
	if err != nil || len(all) != 2 || all[0].NumElements() != 10 {
		t.Errorf("got %v, %v, want the parts of a sequence of 5 elements", all, err)
	}
}

// Elements that the caller takes stay after the outputs are released, and a
// sequence that is an input stays the caller's.
func TestSequenceOwnership(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		input s sequence(f32[n])
		input x f32[n]
		y = SequenceInsert(s, x)
		z = SequenceConstruct(x, x)
		output y sequence(f32[n])
		output z sequence(f32[n])`)
	a, x := modeltest.Of(t, []float32{1}, 1), modeltest.Of(t, []float32{2}, 1)
	list := tenure.Sequence{a, a}
	out := modeltest.Must(s.Run(t.Context(), tenure.Inputs{"s": list, "x": x}))
	y, z := sequenceOf(t, out, "y"), sequenceOf(t, out, "z")
	if err := out.Release(); err != nil {
		t.Fatal(err)
	}
	if got, want := shapesOf(t, y)+" "+shapesOf(t, z), "f32[1][1] f32[1][1] f32[1][2] f32[1][2] f32[1][2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !a.IsDonatable() {
		t.Errorf("got %v, want the element to be the caller's alone", a.WhyNotDonatable())
	}
}

func TestCompositeMisuse(t *testing.T) {
	memorytest.Check(t)
	s := compositeSession(t, `
		opset 18
		opset "ai.onnx.ml" 3
		input s sequence(f32[n])
		input m map(i64, f32)
		input o optional(f32[n])
		n = SequenceLength(s)
		v = "ai.onnx.ml"::DictVectorizer(m) {int64_vocabulary = [1, 2]}
		h = OptionalHasElement(o)
		output n i64[]
		output v f32[1,2]
		output h bool[]`)
	x, keys := modeltest.Of(t, []float32{1, 2}, 2), modeltest.Of(t, []int64{1, 2}, 2)
	table := modeltest.Of(t, []int64{1, 2, 1, 1, 1, 1, 1, 1, 1}, 1, 9)
	m := tenure.Map{Keys: keys, Values: x}
	all := tenure.Inputs{"s": tenure.Sequence{x}, "m": m, "o": x}
	if got, want := resultOf(t, s, all), "n: i64[][1]; v: f32[1,2][1 2]; h: bool[][1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wide := modeltest.Of(t, make([]float32, 4), 2, 2)
	strided := modeltest.Must(wide.Transpose())
	defer strided.Release()
	for _, c := range []struct {
		in   tenure.Inputs
		want string
	}{
		{tenure.Inputs{"m": m, "o": x}, "got no value for s: sequence of f32[n]"},
		{tenure.Inputs{"s": nil, "m": m, "o": x}, "got no value for s: sequence of f32[n]"},
		{tenure.Inputs{"s": x, "m": m, "o": x}, "want a Sequence"},
		{tenure.Inputs{"s": tenure.Absent, "m": m, "o": x}, "got Absent, want a Sequence"},
		{tenure.Inputs{"s": tenure.Sequence{nil}, "m": m, "o": x}, "element 0: got no tensor"},
		{tenure.Inputs{"s": tenure.Sequence{x, strided}, "m": m, "o": x}, "element 1"},
		{tenure.Inputs{"s": tenure.Sequence{keys}, "m": m, "o": x}, "got i64[2], want f32[n]"},
		{tenure.Inputs{"s": tenure.Sequence{x}, "m": tenure.Sequence{x}, "o": x}, "want a Map"},
		{tenure.Inputs{"s": tenure.Sequence{x}, "m": tenure.Map{Keys: keys}, "o": x}, "want keys and values"},
		{tenure.Inputs{"s": tenure.Sequence{x}, "m": tenure.Map{Keys: x, Values: x}, "o": x}, "got f32[2], want i64"},
		{tenure.Inputs{"s": tenure.Sequence{x}, "m": m, "o": tenure.Sequence{x}}, "want a tensor or Absent"},
		{tenure.Inputs{"s": tenure.Sequence{x}, "m": m, "o": x.Donate()}, "its elements are copied"},
		{tenure.Inputs{"s": tenure.Sequence{x}, "m": m, "o": x, "q": x}, `"q", want inputs of the model`},
		{tenure.Inputs{"s": tenure.Sequence{x}, "s.sizes": table, "m": m, "o": x}, `its part "s.sizes" is given too`},
		{tenure.Inputs{"s.sizes": table, "m": m, "o": x}, "got no value for s: sequence of f32[n]"},
	} {
		_, err := s.Run(t.Context(), c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, tenure.ErrInput) {
			t.Errorf("got %v, want an input error with %q", err, c.want)
		}
	}
	out := modeltest.Run(t, s, tenure.Inputs{"s.elements": x, "s.sizes": table, "m.keys": keys, "m.values": x, "o": tenure.Absent})
	if _, err := out.Sequence("v"); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("got %v, want ErrInput for the sequence of a tensor", err)
	}
	if _, err := out.Map("v"); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("got %v, want ErrInput for the map of a tensor", err)
	}
	if got := (&tenure.Composite{Name: "x", Kind: tenure.KindSequence, DType: dtype.F32}).String(); got != "x: sequence of f32[...]" {
		t.Errorf("got %q", got)
	}
}

// A table that does not fit the elements is an error of the run.
func TestFalseTable(t *testing.T) {
	s := compositeSession(t, `
		opset 17
		input s sequence(f32[n])
		input at i64[]
		x = SequenceAt(s, at)
		output x f32[n]`)
	x, at := modeltest.Of(t, []float32{1, 2}, 2), modeltest.Of(t, []int64{0})
	for _, row := range [][]int64{{1, 3, 1, 1, 1, 1, 1, 1, 1}, {1, -2, 1, 1, 1, 1, 1, 1, 1}, {1, 1 << 40, 1, 1, 1, 1, 1, 1, 1}} {
		table := modeltest.Of(t, row, 1, 9)
		if out, err := s.Run(t.Context(), tenure.Inputs{"s.elements": x, "s.sizes": table, "at": at}); err == nil {
			out.Release()
			t.Errorf("%v: got no error", row)
		}
	}
}
