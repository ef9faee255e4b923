// Command generate writes text with a decoder: every token is drawn from what
// the model expects after all tokens before it.
//
//	go run ./examples/generate -prompt "A tensor is"
//	go run ./examples/generate -temperature 0          # the likeliest token each time
//	go run ./examples/generate -top-k 5 -seed 3
//	go run ./examples/generate -texts 3 "A tensor" "The plan of a model" # three texts of each beginning, all together
//	go run ./examples/generate -model FILE -ids 1,2,3  # any exported decoder: numbers in, numbers out
//
// The keys and values of all tokens stay in buffers (tenure.WithStates), so a
// token takes the same memory wherever it stands in the text. Several texts are
// sequences of a pool (tenure.WithStatePool): one run adds a token to each,
// however long it is, and texts with one beginning share its blocks.
//
// generate.onnx knows characters; train.py made it, from the pages of this
// project. What it writes has their look and little sense. tokenizer.json and
// tokenizer_config.json, which tokenizer.py made, say so to others: command
// tenure serve examples/generate answers clients of OpenAI's API with it
// (docs/serve.md).
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/serve/sampling"
)

//go:embed generate.onnx
var characters []byte

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

// options are the flags.
type options struct {
	model, prompt, ids string
	tokens, capacity   int
	texts              int      // of each prompt
	prompts            []string // instead of prompt
	sampling           sampling.Options
	seed               uint64
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("generate", flag.ContinueOnError)
	f.StringVar(&o.model, "model", "", "file of a decoder; the example's own when empty")
	f.StringVar(&o.prompt, "prompt", "A tensor", "text to go on with")
	f.IntVar(&o.texts, "texts", 1, "texts to write of each prompt; arguments are prompts instead of -prompt")
	f.StringVar(&o.ids, "ids", "", "numbers of tokens to go on with, by commas, instead of a prompt")
	f.IntVar(&o.tokens, "n", 400, "tokens to write")
	f.IntVar(&o.capacity, "capacity", 128, "tokens that the model looks back on, 128 as it was trained; older ones are dropped, a quarter at a time")
	f.Float64Var(&o.sampling.Temperature, "temperature", 0.7, "0 for the likeliest token, 1 for the model's probabilities, more for surprises")
	f.IntVar(&o.sampling.TopK, "top-k", 0, "draw among so many likeliest tokens; 0 for all")
	f.Float64Var(&o.sampling.TopP, "top-p", 0.95, "draw among the likeliest tokens that together have this probability")
	f.Uint64Var(&o.seed, "seed", 1, "of the random numbers")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.prompts = f.Args()
	switch {
	case o.texts < 1:
		return o, fmt.Errorf("got %d texts of each prompt, want 1 or more", o.texts)
	case o.tokens < 1 || o.capacity < 4:
		return o, fmt.Errorf("got %d tokens and a capacity of %d, want at least 1 and 4", o.tokens, o.capacity)
	}
	return o, o.sampling.Check()
}

// run writes text to out, and what it took to about.
func run(args []string, out, about io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.texts > 1 || len(o.prompts) > 0 {
		return runSeveral(o, out, about)
	}
	m, err := load(o.model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	words := newWords(m.Metadata().Properties["characters"])
	prompt, err := words.tokens(o.prompt, o.ids)
	if err != nil {
		return err
	}
	d, err := newDecoder(m, o.capacity)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if _, err := io.WriteString(out, words.text(prompt...)); err != nil {
		return err
	}
	s := sampling.New(o.sampling, o.seed)
	for token, err := range d.generate(context.Background(), prompt, o.tokens, s.Draw) {
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, words.text(token)); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	fmt.Fprintf(about, "%d tokens; %d bytes of states, for %d tokens\n", o.tokens, d.states.Bytes(), d.states.Cap())
	return nil
}

func load(file string) (*tenure.Model, error) { return loadWith(file, tenure.WithStates()) }

func loadWith(file string, states tenure.Option) (*tenure.Model, error) {
	if file == "" {
		return tenure.LoadBytes(characters, states)
	}
	return tenure.Load(file, states)
}

// words are the texts of tokens: characters, or their numbers where the model
// does not say what they stand for.
type words struct {
	of     []rune
	number map[rune]int64
}

func newWords(characters string) words {
	w := words{of: []rune(characters), number: map[rune]int64{}}
	for i, c := range w.of {
		w.number[c] = int64(i)
	}
	return w
}

// tokens returns the tokens of a prompt, or of a list of numbers if there is
// one.
func (w words) tokens(prompt, ids string) (list []int64, err error) {
	if ids == "" && len(w.of) > 0 {
		for _, c := range prompt {
			n, ok := w.number[c]
			if !ok {
				return nil, fmt.Errorf("-prompt: got %q, want characters of %q", c, string(w.of))
			}
			list = append(list, n)
		}
	} else {
		for word := range strings.SplitSeq(ids, ",") {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("-ids: got %q, want numbers of tokens by commas: the model does not say what they stand for", ids)
			}
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("got an empty prompt, want one token or more")
	}
	return list, nil
}

func (w words) text(tokens ...int64) string {
	var b strings.Builder
	for _, n := range tokens {
		if n < int64(len(w.of)) {
			b.WriteRune(w.of[n])
		} else {
			fmt.Fprintf(&b, "%d ", n)
		}
	}
	return b.String()
}
