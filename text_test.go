package tenure_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
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
	m := load(t, textModel)
	if in, out := m.Inputs()[0].String(), m.Outputs()[0].String(); in != "words: string[n]" || out != "shouted: string[?]" {
		t.Errorf("got %q and %q, want strings", in, out)
	}
	s := session(t, m)
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

// What is no text, or text where numbers are wanted, is told by name.
func TestTextFaults(t *testing.T) {
	memorytest.Check(t)
	numbers := session(t, load(t, "testdata/state.onnx"))
	text := session(t, load(t, textModel))
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
		{text, tenure.Inputs{"words": of(t, []float32{1}, 1)}, `input "words": got f32[1], want string[n] as u8[n,"words.width"] (see tensor.OfStrings)`, tenure.ErrDType},
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
