// Command commits compares Go benchmarks of the working tree with those of an
// earlier commit.
//
//	go run ./commits [-base REVISION] [-pairs N] [-bench REGEXP] [-with FILE,...] PACKAGE...
//
// PACKAGE is a folder of the module, such as . or eager. The earlier commit is
// checked out in a temporary folder, where the files of -with replace its own
// or are added: benchmarks that it did not have yet. Both trees' tests are
// built, and then run as processes in turns; which goes first alternates. For
// each benchmark it prints the medians and the median of the ratios now / then
// pair by pair, with an interval that holds the true median of the ratios in at
// least 95 of 100 such comparisons (order statistics; seven pairs give the
// smallest and the largest). It needs git.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/results"
)

const fewestPairs = 7

type options struct {
	base, bench, time string
	pairs             int
	with              []string
	packages          []string
	output            results.Output
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.base, "base", "HEAD~1", "the commit to compare with")
	flag.StringVar(&o.bench, "bench", ".", "benchmarks whose names match")
	flag.StringVar(&o.time, "time", "300ms", "how long a benchmark runs in one process")
	flag.IntVar(&o.pairs, "pairs", 9, "pairs of processes, at least 7")
	o.output.Flags(flag.CommandLine)
	with := flag.String("with", "", "files of the module that the earlier commit gets too, separated by commas")
	flag.Parse()
	o.packages = flag.Args()
	if *with != "" {
		o.with = strings.Split(*with, ",")
	}
	if err := run(o); err != nil {
		log.Fatal("commits: ", err)
	}
}

func run(o options) error {
	if o.pairs < fewestPairs || len(o.packages) == 0 {
		return fmt.Errorf("got %d pairs and %d packages, want at least %d and 1", o.pairs, len(o.packages), fewestPairs)
	}
	top, err := output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-commits")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	then := filepath.Join(dir, "then")
	if _, err := output(top, "git", "worktree", "add", "--detach", then, o.base); err != nil {
		return err
	}
	defer output(top, "git", "worktree", "remove", "--force", then)
	for _, file := range o.with {
		data, err := os.ReadFile(filepath.Join(top, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(then, file), data, 0o666)
		}
		if err != nil {
			return err
		}
	}
	base, err := output(top, "git", "rev-parse", "--short", o.base)
	if err != nil {
		return err
	}
	result := results.New("commits", map[string]string{"base": base}, "package", "benchmark")
	for i, pkg := range o.packages {
		var programs [2]string
		for k, tree := range []string{then, top} {
			programs[k] = filepath.Join(dir, fmt.Sprintf("%d.%d.test", i, k))
			if _, err := output(tree, "go", "test", "-c", "-o", programs[k], "./"+pkg); err != nil {
				return err
			}
		}
		if err := compare(result, o, pkg, filepath.Join(top, pkg), programs); err != nil {
			return err
		}
	}
	return o.output.Write(os.Stdout, result, nil)
}

// compare runs both programs in turns and adds a row for each benchmark.
func compare(result *results.Result, o options, pkg, dir string, programs [2]string) error {
	found := map[string]*[2][]float64{}
	var names []string
	for pair := range o.pairs {
		for turn := range 2 {
			k := (pair + turn) % 2
			text, err := output(dir, programs[k], "-test.run=^$", "-test.bench="+o.bench, "-test.benchtime="+o.time)
			if err != nil {
				return err
			}
			for name, nanos := range times(text) {
				if found[name] == nil {
					found[name] = new([2][]float64)
					names = append(names, name)
				}
				found[name][k] = append(found[name][k], nanos)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		then, now := found[name][0], found[name][1]
		if len(then) != o.pairs || len(now) != o.pairs {
			fmt.Fprintf(os.Stderr, "%s %s: only in one of the commits\n", pkg, name)
			continue
		}
		result.Add([]string{pkg, name}, results.Samples("then ns", 1, then), results.Samples("now ns", 1, now), results.Ratios("now / then", now, then))
	}
	return nil
}

// times reads the lines of benchmarks: name, rounds, nanoseconds.
func times(text string) map[string]float64 {
	found := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") || f[3] != "ns/op" {
			continue
		}
		if nanos, err := strconv.ParseFloat(f[2], 64); err == nil {
			found[strings.TrimPrefix(f[0], "Benchmark")] = nanos
		}
	}
	return found
}

func output(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err), errors.New(strings.TrimSpace(said.String()+string(out))))
	}
	return strings.TrimSpace(string(out)), nil
}
