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
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

const fewestPairs = 7

type options struct {
	base, bench, time string
	pairs             int
	with              []string
	packages          []string
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.base, "base", "HEAD~1", "the commit to compare with")
	flag.StringVar(&o.bench, "bench", ".", "benchmarks whose names match")
	flag.StringVar(&o.time, "time", "300ms", "how long a benchmark runs in one process")
	flag.IntVar(&o.pairs, "pairs", 9, "pairs of processes, at least 7")
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
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "package\tbenchmark\tthen\tnow\tnow / then\tinterval\t")
	for i, pkg := range o.packages {
		var programs [2]string
		for k, tree := range []string{then, top} {
			programs[k] = filepath.Join(dir, fmt.Sprintf("%d.%d.test", i, k))
			if _, err := output(tree, "go", "test", "-c", "-o", programs[k], "./"+pkg); err != nil {
				return err
			}
		}
		if err := compare(table, o, pkg, filepath.Join(top, pkg), programs); err != nil {
			return err
		}
	}
	return table.Flush()
}

// compare runs both programs in turns and writes a row for each benchmark.
func compare(table *tabwriter.Writer, o options, pkg, dir string, programs [2]string) error {
	times := map[string]*[2][]float64{}
	var names []string
	for pair := range o.pairs {
		for turn := range 2 {
			k := (pair + turn) % 2
			text, err := output(dir, programs[k], "-test.run=^$", "-test.bench="+o.bench, "-test.benchtime="+o.time)
			if err != nil {
				return err
			}
			for name, nanos := range results(text) {
				if times[name] == nil {
					times[name] = new([2][]float64)
					names = append(names, name)
				}
				times[name][k] = append(times[name][k], nanos)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		then, now := times[name][0], times[name][1]
		if len(then) != o.pairs || len(now) != o.pairs {
			fmt.Fprintf(table, "%s\t%s\tonly in one of the commits\t\t\t\t\n", pkg, name)
			continue
		}
		ratios := make([]float64, o.pairs)
		for i := range ratios {
			ratios[i] = now[i] / then[i]
		}
		slices.Sort(ratios)
		low := rank(o.pairs)
		fmt.Fprintf(table, "%s\t%s\t%.4g ns\t%.4g ns\t%.3f\t%.3f to %.3f\t\n", pkg, name, median(then), median(now), median(ratios), ratios[low], ratios[o.pairs-1-low])
	}
	return nil
}

// results reads the lines of benchmarks: name, rounds, nanoseconds.
func results(text string) map[string]float64 {
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

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// rank returns how many of n sorted values on either side the interval of the
// median leaves out: the most that leave it out of the interval in at most 5 of
// 100 cases, by the binomial distribution.
func rank(n int) int {
	whole := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(n)))
	outside, low := new(big.Rat), 0
	for i := int64(0); 2*i < int64(n); i++ {
		tail := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), i))
		outside.Add(outside, tail.Quo(tail.Add(tail, tail), whole))
		if outside.Cmp(big.NewRat(5, 100)) > 0 {
			break
		}
		low = int(i)
	}
	return low
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
