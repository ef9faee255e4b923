// Command models holds Tenure against ONNX Runtime and OpenVINO on whole
// models.
//
//	go run ./models [flags]
//
// It builds each model's file, or takes one of the zoo that zoo/make.py made,
// starts one process per engine, and lets them run in turn: A B C, B C A.
// README.md describes the measurements and how to install the others. All files
// that it writes are in a temporary folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
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
	names := flags.String("models", "", "models to run, by commas; when empty all, without attention and the zoo")
	zoo := flags.Bool("zoo", false, "run the zoo's models that have been made, if -models names none")
	attention := flags.Bool("attention", false, "run attention alone, over prompts and of steps, if -models names none")
	zooFolder := flags.String("zoofolder", suite.ZooFolder(), "folder in which zoo/make.py made the zoo")
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	weights := flags.String("weights", "mapped,compressed", "how Tenure holds weights, by commas: mapped, compressed")
	lights := flags.String("light", strings.Join(suite.LightFolders(), ","), "folders with light models, by commas")
	list := flags.Bool("list", false, "name the models and end")
	from := flags.Bool("from", false, "the arguments are files written by -results: join them into one")
	var output results.Output
	output.Flags(flags)
	var o contest.Options
	o.Flags(flags)
	flags.StringVar(&o.OV, "openvino", "ov.py", "OpenVINO's side of the contest; without it when empty")
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
	known, zooModels := suite.Models(strings.Split(*lights, ",")), suite.Zoo(*zooFolder)
	named := slices.Concat(known, suite.Attention(), zooModels)
	if *list {
		return write(os.Stdout, named)
	}
	var all []suite.Model
	switch {
	case *names != "":
		if all, err = suite.Choose(named, *names); err != nil {
			return err
		}
	case *attention:
		all = suite.Attention()
	case *zoo:
		all = slices.DeleteFunc(zooModels, suite.Model.Missing)
	default:
		all = known
	}
	if len(all) == 0 {
		return fmt.Errorf("got no model of the zoo in %s, want some (python3 zoo/make.py makes them)", *zooFolder)
	}
	for _, m := range all {
		if m.Missing() {
			return fmt.Errorf("%s: got no model in %s, want one (python3 zoo/make.py %s makes it)", m.Name, m.Folder, m.Name)
		}
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []contest.Row
	var failed []error
	for _, m := range all {
		err := measure(&rows, m, dir, counts, held, o)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", m.Name, err)
		if m.Folder == "" {
			return err
		}
		fmt.Fprintln(os.Stderr, err) // the others of the zoo are measured nevertheless
		failed = append(failed, err)
	}
	if len(rows) == 0 {
		return errors.Join(failed...)
	}
	result := contest.Result("models", rows)
	err = output.Write(os.Stdout, result, func(w io.Writer) error {
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
	return errors.Join(append(failed, err)...)
}

// write names models.
func write(w io.Writer, list []suite.Model) error {
	for _, m := range list {
		line := m.Name
		if m.Missing() {
			line += " (missing: python3 zoo/make.py " + m.Name + ")"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func measure(rows *[]contest.Row, m suite.Model, dir string, threads []int, held []string, o contest.Options) error {
	dir = filepath.Join(dir, m.Name)
	prepare := func() (*contest.Job, error) { return contest.Prepare(m.Name, dir, m.Build, m.Becomes) }
	if m.Folder != "" {
		prepare = func() (*contest.Job, error) { return contest.Open(m.Name, m.Folder, dir) }
	}
	job, err := prepare()
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
