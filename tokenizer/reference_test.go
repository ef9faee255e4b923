package tokenizer_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/tokenizer"
)

var textCount = flag.Int("texts", 0, "number of texts that each kind of tokenizer is compared on (default 1000, with -short 200); from 10000 on, every character too")

func texts(t testing.TB) int {
	t.Helper()
	switch {
	case *textCount > 0:
		return *textCount
	case testing.Short():
		return 200
	}
	return 1000
}

// A reference is a process with the reference library.
type reference struct {
	t   testing.TB
	in  io.Writer
	out *json.Decoder
}

type encoded struct {
	IDs      []int64   `json:"ids"`
	Types    []int64   `json:"types"`
	Mask     []int64   `json:"mask"`
	Special  []int64   `json:"special"`
	Words    []int32   `json:"words"`
	Offsets  [][2]int  `json:"offsets"`
	Tokens   []string  `json:"tokens"`
	Overflow []encoded `json:"overflow"`
	Skipped  string    `json:"skipped"`
	Decoded  string    `json:"decoded"`
	Parts    []string  `json:"parts"`
	Batch    []encoded `json:"batch"`
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error"`
}

type request map[string]any

// newReference starts a process, which ends with the test. It skips without a
// Python that has the library.
func newReference(t testing.TB) *reference {
	t.Helper()
	cmd := exec.Command(pythontest.Interpreter(t, "tokenizers"), filepath.Join("testdata", "reference.py"))
	cmd.Env = append(pythontest.Env(".."), "TOKENIZERS_PARALLELISM=false")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &reference{t, in, json.NewDecoder(bufio.NewReaderSize(out, 1<<20))}
}

func (r *reference) ask(q request) encoded {
	r.t.Helper()
	line, err := json.Marshal(q)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		r.t.Fatal(err)
	}
	var a encoded
	if err := r.out.Decode(&a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

// asEncoded brings an encoding into the reference's form.
func asEncoded(e tokenizer.Encoding) encoded {
	a := encoded{IDs: e.IDs, Types: e.TypeIDs, Mask: e.Mask, Special: e.Special, Words: e.Words, Tokens: e.Tokens}
	for _, o := range e.Offsets {
		a.Offsets = append(a.Offsets, [2]int{o.Start, o.End})
	}
	for _, o := range e.Overflow {
		a.Overflow = append(a.Overflow, asEncoded(o))
	}
	return a
}

// differs says what of two encodings is not equal.
func differs(got, want encoded) string {
	switch {
	case !slices.Equal(got.IDs, want.IDs):
		return fmt.Sprintf("ids\n got %v %q\nwant %v %q", got.IDs, got.Tokens, want.IDs, want.Tokens)
	case !slices.Equal(got.Tokens, want.Tokens):
		return fmt.Sprintf("tokens\n got %q\nwant %q", got.Tokens, want.Tokens)
	case !slices.Equal(got.Offsets, want.Offsets):
		return fmt.Sprintf("offsets of %q\n got %v\nwant %v", got.Tokens, got.Offsets, want.Offsets)
	case !slices.Equal(got.Types, want.Types):
		return fmt.Sprintf("type ids: got %v, want %v", got.Types, want.Types)
	case !slices.Equal(got.Mask, want.Mask):
		return fmt.Sprintf("mask: got %v, want %v", got.Mask, want.Mask)
	case !slices.Equal(got.Special, want.Special):
		return fmt.Sprintf("special: got %v, want %v", got.Special, want.Special)
	case !slices.Equal(got.Words, want.Words):
		return fmt.Sprintf("words: got %v, want %v", got.Words, want.Words)
	case len(got.Overflow) != len(want.Overflow):
		return fmt.Sprintf("overflow: got %d parts, want %d", len(got.Overflow), len(want.Overflow))
	}
	for i := range got.Overflow {
		if d := differs(got.Overflow[i], want.Overflow[i]); d != "" {
			return fmt.Sprintf("overflow %d: %s", i, d)
		}
	}
	return ""
}

// A comparison is a tokenizer of both libraries.
type comparison struct {
	t            *testing.T
	ref          *reference
	own          *tokenizer.Tokenizer
	fail, panics int
}

// compare loads a file in both libraries.
func compare(t *testing.T, ref *reference, file []byte) *comparison {
	t.Helper()
	own, err := tokenizer.Parse(file)
	if a := ref.ask(request{"load": string(file)}); a.Error != "" {
		t.Fatalf("the reference library does not load the file: %s", a.Error)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &comparison{t: t, ref: ref, own: own}
}

// text compares an encoding and what its ids decode to, and says whether they
// are equal.
func (c *comparison) text(text, pair string, hasPair, special bool) bool {
	q := request{"text": text, "special": special}
	if hasPair {
		q["pair"] = pair
	}
	want := c.ref.ask(q)
	options := []tokenizer.Option{tokenizer.CharOffsets()}
	if !special {
		options = append(options, tokenizer.WithoutSpecial())
	}
	var got tokenizer.Encoding
	var err error
	if hasPair {
		got, err = c.own.EncodePair(text, pair, options...)
	} else {
		got, err = c.own.Encode(text, options...)
	}
	diff := ""
	switch {
	case err == nil && (strings.Contains(want.Error, "out of bounds") || strings.Contains(want.Error, "bad split")):
		c.panics++ // of the reference library, which has no answer then
	case err != nil && strings.Contains(err.Error(), "steps for one match"):
		// The reference library takes minutes.
	case want.Error != "" || err != nil:
		if (want.Error != "") != (err != nil) {
			diff = fmt.Sprintf("error: got %v, want %q", err, want.Error)
		}
	default:
		diff = differs(asEncoded(got), want)
		if diff == "" {
			diff = c.decoded(got, text, hasPair, special, want)
		}
	}
	if diff == "" {
		return true
	}
	if c.fail++; c.fail <= 5 {
		c.t.Errorf("%q, %q: %s", text, pair, diff)
	}
	return false
}

func (c *comparison) decoded(got tokenizer.Encoding, text string, hasPair, special bool, want encoded) string {
	if d := c.own.Decode(got.IDs, true); d != want.Skipped {
		return fmt.Sprintf("decoded without special tokens\n got %q\nwant %q", d, want.Skipped)
	}
	if d := c.own.Decode(got.IDs, false); d != want.Decoded {
		return fmt.Sprintf("decoded\n got %q\nwant %q", d, want.Decoded)
	}
	if hasPair {
		return ""
	}
	var options []tokenizer.Option
	if !special {
		options = append(options, tokenizer.WithoutSpecial())
	}
	ids, err := c.own.AppendIDs(nil, text, options...)
	if err != nil || !slices.Equal(ids, got.IDs) {
		return fmt.Sprintf("AppendIDs: got %v, %v, want %v", ids, err, got.IDs)
	}
	return ""
}

// run compares drawn texts: most alone, some in pairs.
func (c *comparison) run(seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	equal := 0
	for range n {
		text := drawText(rng)
		pair, hasPair := "", rng.IntN(5) == 0
		if hasPair {
			pair = drawText(rng)
		}
		if c.text(text, pair, hasPair, rng.IntN(4) > 0) {
			equal++
		}
	}
	c.t.Logf("%d texts, %d differ, %d on which the reference library panics", n, n-equal, c.panics)
}
