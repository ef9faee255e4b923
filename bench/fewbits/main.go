// Command fewbits holds Tenure's products with weights of few bits against
// ONNX Runtime's and against memory.
//
//	go run ./fewbits [flags]
//
// The model is the products of a decoder, for one row (a step) and for many (a
// prompt). Between the engines' turns it measures how fast as many bytes as the
// weights and scales have are read.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/limits"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/bench/internal/suite"
	"github.com/tenure-go/tenure/memory"
)

func main() {
	engine.ServeIfAsked()
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fewbits", flag.ExitOnError)
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	bits := flags.String("bits", "4", "bits of a weight, by commas: 2, 4, 8")
	levels := flags.String("levels", "0,4", "accuracy levels, by commas: 0 for floats, 4 for bytes")
	rows := flags.String("rows", "1,128", "rows, by commas")
	layers := flags.Int("layers", 8, "layers")
	width := flags.Int("width", 2048, "width of a layer")
	block := flags.Int("block", 32, "elements of a block of weights")
	var output results.Output
	output.Flags(flags)
	var o contest.Options
	o.Flags(flags)
	flags.Parse(args)
	var lists [4][]int
	for i, text := range []string{*bits, *levels, *rows, *threads} {
		list, err := numbers(text)
		if err != nil {
			return err
		}
		lists[i] = list
	}
	var result *results.Result
	for _, bits := range lists[0] {
		for _, level := range lists[1] {
			for _, rows := range lists[2] {
				d := suite.FewBits{Layers: *layers, Width: *width, Rows: rows, Bits: bits, Block: *block, AccuracyLevel: level}
				if err := measure(&result, d, lists[3], o); err != nil {
					return fmt.Errorf("%+v: %w", d, err)
				}
			}
		}
	}
	return output.Write(out, result, nil)
}

func numbers(words string) (list []int, err error) {
	for _, word := range strings.Split(words, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("got %q, want whole numbers, by commas", words)
		}
		list = append(list, n)
	}
	return list, nil
}

// measure adds the rows of a model to the result, which the first one begins.
func measure(result **results.Result, d suite.FewBits, threads []int, o contest.Options) error {
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j, err := contest.Prepare("fewbits", dir, func() (*onnxfile.Graph, error) { return d.Graph(), nil }, nil)
	if err != nil {
		return err
	}
	o.Weights = "mapped"
	buffer, err := memory.Alloc(int(d.WeightBytes()), memory.Activations)
	if err != nil {
		return err
	}
	defer buffer.Release()
	floats := unsafe.Slice((*float32)(unsafe.Pointer(&buffer.Bytes()[0])), len(buffer.Bytes())/4)
	limits.Scale(floats, 0, 1) // brings the pages in
	for _, n := range threads {
		promise, err := promised(j.File(), d, n)
		if err != nil {
			return err
		}
		var reads []int64
		o.Between = func() {
			reads = append(reads, int64(min(limits.Read(floats, n), limits.Read(floats, n), limits.Read(floats, n))))
		}
		got, err := j.Run(n, o)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%+v, %s\n", d, got.Progress())
		if *result == nil {
			*result = results.New("fewbits", map[string]string{"ONNX Runtime": contest.Version(got.ORT.About)}, "bits", "level", "rows", "threads")
		}
		(*result).Add([]string{strconv.Itoa(d.Bits), strconv.Itoa(d.AccuracyLevel), strconv.Itoa(d.Rows), strconv.Itoa(n)}, figures(got, reads, d.WeightBytes(), promise)...)
	}
	return nil
}

// promised is the arena, the scratch and the output of a run.
func promised(file string, d suite.FewBits, threads int) (int64, error) {
	m, err := tenure.Load(file)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	p, err := m.Plan(context.Background(), tenure.Shapes{"x": {d.Rows, d.Width}}, tenure.WithThreads(threads))
	if err != nil {
		return 0, err
	}
	return p.ArenaBytes + p.ScratchBytes + p.IOBytes - int64(4*d.Rows*d.Width), nil // the input is there already
}

// figures are those of one row. reads are the times of reading as many bytes as
// the weights have, turn by turn.
func figures(got contest.Row, reads []int64, weights, promise int64) []results.Named {
	const mib = 1 << 20
	ours, theirs := got.Tenure, got.ORT
	return append(contest.Times(ours, theirs),
		results.Ratios("of reading", reads, ours.Turns()),
		results.Once("Tenure peak MiB", float64(ours.Took())/mib), results.Once("ONNX Runtime peak MiB", float64(theirs.Took())/mib),
		results.Once("peak / weights and promise", float64(ours.Took())/float64(weights+promise)),
		results.Once("difference", got.Difference), results.Once("of", got.Largest), results.Once("others", got.Others))
}
