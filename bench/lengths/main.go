// Command lengths measures runs at lengths that a model has not met before.
//
//	go run ./lengths [flags]
//
// It starts a process of Tenure and one of ONNX Runtime, lets both run a model
// at ten lengths in turn, and ends them; and again, seven times or more. The
// first run of each length is compared with later runs of it. README.md
// describes the measurements and how to install ONNX Runtime. The models of the
// optional test data are left out, and named, where there are none.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
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
	chosen []sweep
	runs   int // of a length that is not new
	tokens int // of the growing decoder
	output results.Output
}

// growingName is the case in which gpt2_tiny decodes with a growing cache.
const growingName = "gpt2_tiny, growing"

// names are those of all cases.
func names() (list []string) {
	for _, s := range sweeps {
		list = append(list, s.name)
	}
	return append(list, growingName, deep.name)
}

func parse(args []string) (o options, chosen []string, threads []int, err error) {
	flags := flag.NewFlagSet("lengths", flag.ContinueOnError)
	models := flags.String("models", "", "cases to run, by semicolons; all when empty: "+strings.Join(names(), "; "))
	counts := flags.String("threads", "1", "numbers of threads, by commas")
	flags.IntVar(&o.runs, "runs", 7, "runs of a length after its first one, whose median counts")
	flags.IntVar(&o.tokens, "tokens", 50, "tokens that the decoder with a growing cache makes")
	o.output.Flags(flags)
	o.Options.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return o, nil, nil, err
	}
	chosen = names()
	if *models != "" {
		chosen = strings.Split(*models, ";")
	}
	for i, name := range chosen {
		if chosen[i] = strings.TrimSpace(name); !slices.Contains(names(), chosen[i]) {
			return o, nil, nil, fmt.Errorf("-models: got %q, want one of %q", name, names())
		}
	}
	threads, err = contest.Threads(*counts)
	return o, chosen, threads, err
}

func run(args []string, out io.Writer) error {
	o, chosen, threads, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d, err := newData(dir)
	if err != nil {
		return err
	}
	var r *results.Result
	for _, name := range chosen {
		for _, n := range threads {
			m := &measurement{options: o, data: d, name: name, threads: n}
			figures, err := m.measure()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if figures == nil {
				continue
			}
			if r == nil {
				r = results.New("lengths", map[string]string{"ONNX Runtime": m.version}, "case", "threads")
			}
			r.Add([]string{name, fmt.Sprint(n)}, figures...)
			fmt.Fprintf(os.Stderr, "%s, %d threads: %s\n", name, n, progress(figures))
		}
	}
	if r == nil {
		return fmt.Errorf("got no model, want some")
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
