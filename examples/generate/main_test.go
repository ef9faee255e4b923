package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/serve/sampling"
	"github.com/tenure-go/tenure/tensor"
)

func open(t *testing.T, file string, capacity int) *decoder {
	t.Helper()
	m, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDecoder(m, capacity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return d
}

func greedy() *sampling.Sampler { return sampling.New(sampling.Options{}, 1) }

func collect(t *testing.T, d *decoder, prompt []int64, n int, s *sampling.Sampler) (list []int64) {
	t.Helper()
	for token, err := range d.generate(context.Background(), prompt, n, s.Draw) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, token)
	}
	return list
}

func promptOf(t *testing.T, text string) ([]int64, words) {
	t.Helper()
	m, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w := newWords(m.Metadata().Properties["characters"])
	list, err := w.tokens(text, "")
	if err != nil {
		t.Fatal(err)
	}
	return list, w
}

// TestModelKnowsWords holds the model to what it learned: characters of text
// like the one that it was trained on are far likelier than by chance.
func TestModelKnowsWords(t *testing.T) {
	memorytest.Check(t)
	d := open(t, "", 256)
	list, w := promptOf(t, "The bytes of a tensor are written by the operation that holds them, and the other tensors are not changed.")
	loss := 0.0
	for i, token := range list[:len(list)-1] {
		logits, err := d.next(context.Background(), []int64{token})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range logits {
			sum += math.Exp(float64(v - logits[list[i+1]]))
		}
		loss += math.Log(sum) / float64(len(list)-1)
	}
	if chance := math.Log(float64(len(w.of))); loss > 0.6*chance {
		t.Errorf("got a loss of %.2f per character, want at most 0.6 of %.2f, that of chance", loss, chance)
	}
}

// TestStatesStayInPlace compares a text with the one of the model without
// states, whose caches are joined in every run, and holds every step to the
// same memory.
func TestStatesStayInPlace(t *testing.T) {
	memorytest.Check(t)
	prompt, _ := promptOf(t, "A tensor is")
	d := open(t, "", 128)
	first, err := d.next(context.Background(), prompt)
	if err != nil {
		t.Fatal(err)
	}
	s := greedy()
	got := []int64{s.Draw(first)}
	var peak int64
	for len(got) < 60 {
		memory.ResetPeak()
		before := memory.Stats().Total.Current
		logits, err := d.next(context.Background(), got[len(got)-1:])
		if err != nil {
			t.Fatal(err)
		}
		took := memory.Stats().Total.Peak - before
		if len(got) == 3 { // the plan and the arena of one token are there
			peak = took
		}
		if len(got) > 3 && took != peak {
			t.Errorf("token %d: a step took %d bytes, want %d as others", len(got), took, peak)
		}
		got = append(got, s.Draw(logits))
	}
	if copied, err := d.states.Copied(); err != nil || len(copied) > 0 {
		t.Errorf("got copies %v, %v, want none", copied, err)
	}
	if want := withoutStates(t, prompt, len(got)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v, as without states", got, want)
	}
}

// must ends the test on an error.
func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// of is a tensor that is released when the test ends.
func of[T int64 | float32](t *testing.T, data []T, dims ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(data, dims...)
	must(t, x, err)
	t.Cleanup(func() { x.Release() })
	return x
}

// withoutStates writes a text with the model as it is in its file.
func withoutStates(t *testing.T, prompt []int64, n int) (list []int64) {
	t.Helper()
	m, err := tenure.LoadBytes(characters)
	must(t, m, err)
	defer m.Close()
	s, err := m.NewSession()
	must(t, s, err)
	defer s.Close()
	past, read, next := tenure.Inputs{}, 0, prompt
	for _, info := range m.Inputs() {
		if strings.HasPrefix(info.Name, "past") {
			past[info.Name] = of(t, []float32{}, 1, info.Shape.Size(1), 0, info.Shape.Size(3))
		}
	}
	for len(list) < n {
		in := tenure.Inputs{}
		for name, x := range past {
			in[name] = x
		}
		places := make([]int64, len(next))
		for i := range places {
			places[i] = int64(read + i)
		}
		in["input_ids"], in["position_ids"] = of(t, next, 1, len(next)), of(t, places, 1, len(next))
		out, err := s.Run(context.Background(), in)
		must(t, out, err)
		t.Cleanup(func() { out.Release() })
		logits, err := tensor.Values[float32](out["logits"])
		must(t, logits, err)
		for name := range past {
			past[name] = out[strings.Replace(name, "past_key_values", "present", 1)]
		}
		read += len(next)
		next = []int64{greedy().Draw(logits[len(logits)-len(logits)/len(next):])}
		list = append(list, next...)
	}
	return list
}

// A text that is longer than the buffers goes on, also after a prompt that is.
func TestWindow(t *testing.T) {
	memorytest.Check(t)
	d := open(t, "", 16)
	prompt, _ := promptOf(t, strings.Repeat("A tensor is a handle. ", 3))
	collect(t, d, prompt, 40, greedy())
	if d.states.Cap() != 16 || d.states.Len() > 16 || d.read != len(prompt)+39 {
		t.Errorf("got %d of %d rows after %d tokens, want at most 16 after %d", d.states.Len(), d.states.Cap(), d.read, len(prompt)+39)
	}
}

// Another exported decoder runs by numbers.
func TestOtherDecoder(t *testing.T) {
	file := filepath.Join(cmp.Or(os.Getenv("TENURE_SHARED"), filepath.Join("..", "..", "..", "shared")), "models", "gpt2_tiny", "model.onnx")
	if _, err := os.Stat(file); err != nil {
		t.Skip("the optional test data are not here: ", err)
	}
	memorytest.Check(t)
	var out, about bytes.Buffer
	args := []string{"-model", file, "-ids", "5,6,7", "-n", "20", "-capacity", "60", "-temperature", "0"}
	if err := run(args, &out, &about); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(out.String()); len(got) != 23 || !slices.Equal(got[:3], []string{"5", "6", "7"}) {
		t.Errorf("got %q, want the prompt and 20 numbers", got)
	}
}

func TestRun(t *testing.T) {
	memorytest.Check(t)
	write := func(args ...string) string {
		t.Helper()
		var out, about bytes.Buffer
		if err := run(append(args, "-n", "50"), &out, &about); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(about.String(), "50 tokens; ") {
			t.Errorf("got %q, want what the text took", about.String())
		}
		return out.String()
	}
	one := write("-prompt", "In Go ")
	if !strings.HasPrefix(one, "In Go ") || len(one) != len("In Go ")+50+1 {
		t.Errorf("got %q, want the prompt and 50 characters", one)
	}
	if again := write("-prompt", "In Go "); again != one {
		t.Errorf("the same seed: got %q and %q, want the same", one, again)
	}
	if other := write("-prompt", "In Go ", "-seed", "2", "-temperature", "2", "-top-p", "1"); other == one {
		t.Errorf("another seed at a high temperature: got %q again", other)
	}
	for want, args := range map[string][]string{
		"want characters of":    {"-prompt", "ä"},
		"want one token":        {"-prompt", ""},
		"want numbers":          {"-ids", "a"},
		"top_p: got -1":         {"-top-p", "-1"},
		"at least 1 and 4":      {"-capacity", "3"},
		"no such file":          {"-model", "none.onnx"},
		"pairs given to WithSt": {"-model", filepath.Join("..", "digits", "digits.onnx")},
	} {
		if err := run(args, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", args, err, want)
		}
	}
}

// A decoder whose inputs are others is refused by their names.
func TestOtherInputs(t *testing.T) {
	memorytest.Check(t)
	m, err := tenure.Load(filepath.Join("..", "decode", "decode.onnx"), tenure.WithStates(tenure.StatePair{Input: "keys", Output: "next_keys"}, tenure.StatePair{Input: "values", Output: "next_values"}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := newDecoder(m, 8); err == nil || !strings.Contains(err.Error(), "got input token") {
		t.Errorf("got error %v, want one that names the input", err)
	}
}

// TestTwoLengths writes with a model whose states have two lengths.
func TestTwoLengths(t *testing.T) {
	memorytest.Check(t)
	p, err := ir.Parse(`func @f(%input_ids: i64[1,n], %past_0: f32[1,?,1], %past_1: f32[1,?,1]) {
		%x = cast(%input_ids) {to = f32}
		%last = constant() {dtype = i64, dims = [1], ints = [2]}
		%rows = unsqueeze(%x, %last)
		%row = reduce_max(%rows) {keepdims = 1}
		%present_0 = concat(%past_0, %rows) {axis = 1}
		%present_1 = concat(%past_1, %row) {axis = 1}
		%sum = reduce_sum(%present_1) {keepdims = 1}
		%logits = add(%rows, %sum)
		return %logits, %present_0, %present_1 }`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := tenure.LoadProgram(p, nil, tenure.WithStates())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d, err := newDecoder(m, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var got []float32
	for _, err := range d.generate(t.Context(), []int64{1, 2}, 3, func(logits []float32) int64 { got = append(got, logits[0]); return 3 }) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []float32{4, 8, 11}; !slices.Equal(got, want) {
		t.Errorf("got logits %v, want %v", got, want)
	}
}

// TestTokenizer wants the tokens that the model has in the files beside it.
func TestTokenizer(t *testing.T) {
	m, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	text, err := os.ReadFile("tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Model struct{ Vocab map[string]int64 }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	words := newWords(m.Metadata().Properties["characters"])
	if len(file.Model.Vocab) != len(words.of) {
		t.Errorf("got %d tokens in the file, want the %d of the model: run tokenizer.py", len(file.Model.Vocab), len(words.of))
	}
	for i, c := range words.of {
		if got := file.Model.Vocab[string(c)]; got != int64(i) {
			t.Errorf("%q: got token %d, want %d: run tokenizer.py", c, got, i)
		}
	}
}
