// Command models holds Tenure against ONNX Runtime on whole models.
//
//	go run ./models [flags]
//
// It builds each model's file, starts one process per engine, and lets them
// run in turn: A B A B. See README.md for what is measured and how to install
// ONNX Runtime. Everything that it writes lies in a temporary folder.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
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
	lights := flags.String("light", strings.Join(lightFolders(), ","), "folders with light models, by commas")
	list := flags.Bool("list", false, "name the models and end")
	from := flags.Bool("from", false, "the arguments are files written by -json: print their results as one table")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	var o contest.Options
	o.Flags(flags)
	flags.Parse(args)
	if *from {
		return merge(flags.Args(), *asJSON)
	}
	counts, err := parseThreads(*threads)
	if err != nil {
		return err
	}
	all, err := choose(models(strings.Split(*lights, ",")), *names)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range all {
			fmt.Println(m.name)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	report := contest.NewReport()
	for _, m := range all {
		if err := measure(report, m, dir, counts, o); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return print(report, *asJSON)
}

// lightFolders are the places where the light models may be: the optional
// data beside the module, and the onnx package that ort.py installs.
func lightFolders() []string {
	site := filepath.Join(contest.DefaultVenv(), "lib", "python3*", "site-packages", "onnx", "backend", "test", "data", "light")
	folders, _ := filepath.Glob(site) // the pattern is well formed
	shared := os.Getenv("TENURE_SHARED")
	for up := "."; shared == ""; up = filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(up, "ARCHITECTURE.md")); err == nil {
			shared = filepath.Join(up, "..", "shared")
		} else if len(up) > 60 {
			return folders
		}
	}
	return append([]string{filepath.Join(shared, "models")}, folders...)
}

func choose(all []model, names string) ([]model, error) {
	if names == "" {
		return all, nil
	}
	var chosen []model
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(m model) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-models: got %q, want one of those that -list names", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func parseThreads(words string) (counts []int, err error) {
	for _, word := range strings.Split(words, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-threads: got %q, want numbers from 1 up", words)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

func measure(report *contest.Report, m model, dir string, threads []int, o contest.Options) error {
	dir = filepath.Join(dir, m.name)
	job, err := contest.Prepare(m.name, dir, m.build, m.becomes)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, n := range threads {
		row, err := job.Run(n, o)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, row.Progress())
		report.Rows = append(report.Rows, row)
	}
	return nil
}

func print(r *contest.Report, asJSON bool) error {
	if asJSON {
		return r.WriteJSON(os.Stdout)
	}
	return r.WriteTable(os.Stdout)
}

// merge prints stored results as one.
func merge(files []string, asJSON bool) error {
	if len(files) == 0 {
		return fmt.Errorf("-from: got no files, want some")
	}
	all := &contest.Report{}
	for _, file := range files {
		if err := all.Read(file); err != nil {
			return err
		}
	}
	return print(all, asJSON)
}
