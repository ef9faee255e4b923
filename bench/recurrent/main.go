// Command recurrent holds Tenure's recurrent cells against ONNX Runtime's and
// OpenVINO's.
//
//	go run ./recurrent [flags]
//
// The models have one node each: a cell over 100 steps with as many inputs as
// states.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/results"
)

func main() {
	engine.ServeIfAsked()
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// cell is a node of a model.
type cell struct {
	kind                       string
	hidden, dirs, batch, steps int
}

// gates is how many matrices a cell has.
var gates = map[string]int{"RNN": 1, "GRU": 3, "LSTM": 4}

func (c cell) name() string {
	name := fmt.Sprintf("%s-%d-%d", strings.ToLower(c.kind), c.hidden, c.batch)
	if c.dirs == 2 {
		name += "-both"
	}
	return name
}

func (c cell) build() (*onnxfile.Graph, error) {
	g := onnxfile.New(17)
	rows := gates[c.kind] * c.hidden
	source := onnxfile.He(onnxfile.Seed(c.name()), 6*c.hidden)
	g.Input("x", onnxfile.F32, c.steps, c.batch, c.hidden)
	g.Weight("w", source, c.dirs, rows, c.hidden)
	g.Weight("r", source, c.dirs, rows, c.hidden)
	g.Weight("b", source, c.dirs, 2*rows)
	direction := "forward"
	if c.dirs == 2 {
		direction = "bidirectional"
	}
	attrs := []onnxfile.Attr{onnxfile.Int("hidden_size", int64(c.hidden)), onnxfile.Text("direction", direction)}
	if c.kind == "GRU" {
		attrs = append(attrs, onnxfile.Int("linear_before_reset", 1)) // as torch exports it
	}
	g.Node(c.kind, []string{"x", "w", "r", "b"}, []string{"y", "h"}, attrs...)
	g.Output("y", onnxfile.F32)
	g.Output("h", onnxfile.F32)
	return g, nil
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("recurrent", flag.ExitOnError)
	kinds := flags.String("cells", "LSTM,GRU", "cells, by commas: RNN, GRU, LSTM")
	hidden := flags.String("hidden", "31,100,256", "numbers of states, by commas")
	directions := flags.String("directions", "1,2", "directions, by commas")
	batches := flags.String("batch", "1,8", "samples, by commas")
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	steps := flags.Int("steps", 100, "steps of a sequence")
	var output results.Output
	output.Flags(flags)
	var o contest.Options
	o.Flags(flags)
	flags.StringVar(&o.OV, "openvino", "ov.py", "OpenVINO's side of the contest; without it when empty")
	flags.Parse(args)
	var lists [4][]int
	for i, text := range []string{*hidden, *directions, *batches, *threads} {
		for _, word := range strings.Split(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || i == 1 && n > 2 {
				return fmt.Errorf("got %q, want numbers from 1 up, by commas, and 1 or 2 directions", text)
			}
			lists[i] = append(lists[i], n)
		}
	}
	var rows []contest.Row
	for _, kind := range strings.Split(*kinds, ",") {
		if gates[kind] == 0 {
			return fmt.Errorf("-cells: got %q, want RNN, GRU or LSTM", kind)
		}
		for _, hidden := range lists[0] {
			for _, dirs := range lists[1] {
				for _, batch := range lists[2] {
					if err := measure(&rows, cell{kind, hidden, dirs, batch, *steps}, lists[3], o); err != nil {
						return err
					}
				}
			}
		}
	}
	return output.Write(out, contest.Result("recurrent", rows), nil)
}

func measure(rows *[]contest.Row, c cell, threads []int, o contest.Options) error {
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j, err := contest.Prepare(c.name(), filepath.Join(dir, c.name()), c.build, nil)
	if err != nil {
		return err
	}
	o.Weights = "mapped"
	for _, n := range threads {
		row, err := j.Run(n, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name(), err)
		}
		fmt.Fprintln(os.Stderr, row.Progress())
		*rows = append(*rows, row)
	}
	return nil
}
