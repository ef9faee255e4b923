// Command generate measures the tokens of decoders with cached keys and values.
//
//	go run ./generate [flags]
//
// It starts a process of Tenure and one of ONNX Runtime, lets both make tokens
// after as many cached ones in turn, and ends them; and again, seven times or
// more. Every token's run takes the caches that the run before returned.
// README.md describes the measurements and how to install ONNX Runtime. The
// model of the optional test data is left out, and named, where there is none.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
)

func main() {
	log.SetFlags(0)
	engine.ServeIfAsked()
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// options are the flags.
type options struct {
	contest.Options
	chosen  []*decoder
	pasts   []int // of the decoders whose positions allow it
	tokens  int   // per text
	threads []int
	output  results.Output
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	var known []string
	for _, d := range decoders {
		known = append(known, d.name)
	}
	models := flags.String("models", strings.Join(known, ","), "decoders, by commas")
	counts := flags.String("threads", "1", "numbers of threads, by commas")
	pasts := flags.String("past", "16,64,256,1024,2031", "cached tokens before the first one that is timed, by commas, of the decoder of six layers")
	flags.IntVar(&o.tokens, "tokens", 0, "tokens per text; 50, or 16 of the decoder of six layers, when 0")
	o.output.Flags(flags)
	o.Options.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for name := range strings.SplitSeq(*models, ",") {
		i := slices.Index(known, name)
		if i < 0 {
			return o, fmt.Errorf("-models: got %q, want one of %q", name, known)
		}
		o.chosen = append(o.chosen, decoders[i])
	}
	for word := range strings.SplitSeq(*pasts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-past: got %q, want numbers from 1 up", *pasts)
		}
		o.pasts = append(o.pasts, n)
	}
	o.threads, err = contest.Threads(*counts)
	return o, err
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeData(dir); err != nil {
		return err
	}
	var r *results.Result
	for _, d := range o.chosen {
		file, err := d.write(dir)
		if err != nil {
			log.Printf("left out: %v", err)
			continue
		}
		for _, threads := range o.threads {
			m := &measurement{options: o, decoder: d, folder: dir, file: file, threads: threads}
			if err := m.measure(); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			if r == nil {
				r = results.New("generate", map[string]string{"ONNX Runtime": m.version}, "decoder", "past", "threads")
			}
			for i, past := range m.pasts {
				figures := m.times[i].figures(m.tokens)
				r.Add([]string{d.name, fmt.Sprint(past), fmt.Sprint(threads)}, figures...)
				fmt.Fprintf(os.Stderr, "%s after %d tokens, %d threads: %s\n", d.name, past, threads, progress(figures))
			}
		}
	}
	if r == nil {
		return fmt.Errorf("got no decoder, want some")
	}
	return o.output.Write(out, r, nil)
}

// progress is a row in few words.
func progress(figures []results.Named) string {
	var words []string
	for _, f := range figures {
		words = append(words, fmt.Sprintf("%s %s", f.Name, f.Figure))
	}
	return strings.Join(words, ", ")
}
