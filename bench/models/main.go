// Command models holds Tenure against ONNX Runtime on whole models.
//
//	go run ./models [flags]
//
// It builds each model's file, starts one process per engine, and lets them
// run in turn: A B A B. README.md describes the measurements and how to
// install ONNX Runtime. All files that it writes are in a temporary folder.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

func main() {
	log.SetFlags(0)
	engine.ServeIfAsked()
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("models", flag.ExitOnError)
	names := flags.String("models", "", "models to run, by commas; all when empty")
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	weights := flags.String("weights", "mapped,compressed", "how Tenure holds weights, by commas: mapped, compressed")
	lights := flags.String("light", strings.Join(suite.LightFolders(), ","), "folders with light models, by commas")
	list := flags.Bool("list", false, "name the models and end")
	from := flags.Bool("from", false, "the arguments are files written by -results: join them into one")
	var output results.Output
	output.Flags(flags)
	var o contest.Options
	o.Flags(flags)
	flags.Parse(args)
	if *from {
		return join(flags.Args(), output)
	}
	counts, err := contest.Threads(*threads)
	if err != nil {
		return err
	}
	var held []string
	for _, word := range strings.Split(*weights, ",") {
		if word != "mapped" && word != "compressed" {
			return fmt.Errorf("-weights: got %q, want mapped, compressed or both", *weights)
		}
		held = append(held, word)
	}
	all, err := suite.Choose(suite.Models(strings.Split(*lights, ",")), *names)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range all {
			fmt.Println(m.Name)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []contest.Row
	for _, m := range all {
		if err := measure(&rows, m, dir, counts, held, o); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	result := contest.Result("models", rows)
	return output.Write(os.Stdout, result, func(w io.Writer) error {
		if err := result.WriteText(w); err != nil {
			return err
		}
		for _, row := range rows {
			if err := row.WriteCalls(w); err != nil {
				return err
			}
		}
		return nil
	})
}

func measure(rows *[]contest.Row, m suite.Model, dir string, threads []int, held []string, o contest.Options) error {
	dir = filepath.Join(dir, m.Name)
	job, err := contest.Prepare(m.Name, dir, m.Build, m.Becomes)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, n := range threads {
		for _, o.Weights = range held {
			row, err := job.Run(n, o)
			if err != nil {
				return err
			}
			fmt.Fprintln(os.Stderr, row.Progress())
			*rows = append(*rows, row)
		}
	}
	return nil
}

// join makes one result of several.
func join(files []string, output results.Output) error {
	if len(files) == 0 {
		return fmt.Errorf("-from: got no files, want some")
	}
	var all *results.Result
	for _, file := range files {
		r, err := results.Read(file)
		switch {
		case err != nil:
			return err
		case all == nil:
			all = r
		default:
			if err := all.Join(r); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return output.Write(os.Stdout, all, nil)
}
