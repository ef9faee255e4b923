// Command weights measures the memory of the weights of a model in several
// processes that run it at the same time, shared and apart.
//
//	go run ./weights [-models resnet50,...] [-processes 4] [FILE...]
//
// It starts the processes one after the other, so that the first one packs,
// lets each run the model once on zeros, and then reads the system's figures
// for the mappings of all of them: the proportional set size (PSS) counts a
// page that several processes map in parts, so that sums are bytes of memory.
// Linux only. All files that it writes are in a temporary folder.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

func main() {
	log.SetFlags(0)
	serveIfAsked()
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("weights", flag.ExitOnError)
	names := flags.String("models", "resnet50", "models to run, by commas; none when files are given")
	processes := flags.Int("processes", 4, "how many processes run a model")
	lights := flags.String("light", strings.Join(suite.LightFolders(), ","), "folders with light models, by commas")
	var output results.Output
	output.Flags(flags)
	flags.Parse(args)
	if *processes < 1 {
		return fmt.Errorf("-processes: got %d, want 1 or more", *processes)
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files := flags.Args()
	if len(files) == 0 {
		if files, err = build(dir, *names, *lights); err != nil {
			return err
		}
	}
	r := results.New("weights", nil, "model")
	r.Note = fmt.Sprintf("%d processes", *processes)
	var tables bytes.Buffer
	for _, file := range files {
		if err := measure(r, &tables, file, dir, *processes); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return output.Write(w, r, func(w io.Writer) error {
		_, err := tables.WriteTo(w)
		return err
	})
}

// build writes the files of the suite's models.
func build(dir, names, lights string) (files []string, err error) {
	models, err := suite.Choose(suite.Models(strings.Split(lights, ",")), names)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		g, err := m.Build()
		if err != nil {
			return nil, err
		}
		f, err := os.Create(filepath.Join(dir, m.Name+".onnx"))
		if err != nil {
			return nil, err
		}
		_, err = g.WriteTo(f)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f.Name())
	}
	return files, nil
}

// measure prints the tables of a model: one process alone, several apart, and
// several that share. Their sums are a row of the result.
func measure(r *results.Result, w io.Writer, file, dir string, processes int) error {
	one, err := group(file, dir, 1, false)
	if err != nil {
		return err
	}
	apart, err := group(file, dir, processes, false)
	if err != nil {
		return err
	}
	shared, err := group(file, dir, processes, true)
	if err != nil {
		return err
	}
	copyOf := one[0].weights()
	r.Add([]string{strings.TrimSuffix(filepath.Base(file), ".onnx")}, results.Once("one copy MiB", inMiB(copyOf)),
		results.Once("apart, sum MiB", inMiB(sum(apart))), results.Once("shared, sum MiB", inMiB(sum(shared))),
		results.Once("shared, of one copy", float64(sum(shared))/float64(copyOf)),
		own("apart, private MiB", apart), own("shared, private MiB", shared), results.Once("arena MiB", inMiB(shared[0].Arena)))
	fmt.Fprintf(w, "%s: one copy of the weights is %s MiB, %s promised\n", filepath.Base(file), mib(copyOf), mib(one[0].Promised))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "process\tload and first run, ms\tpeak MiB\tshared\tin the file\tprivate\tweights, PSS\tprivate bytes of the process\tof them arena\t")
	for _, g := range []struct {
		name string
		list []figures
	}{{"apart", apart}, {"shared", shared}} {
		var private int64
		for i, f := range g.list {
			fmt.Fprintf(t, "%s %d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", g.name, i+1, f.Milliseconds, mib(f.Peak), mib(f.Shared), mib(f.File), mib(f.Private), mib(f.weights()), mib(f.Own), mib(f.Arena))
			private += f.Own
		}
		fmt.Fprintf(t, "%s, sum\t\t\t\t\t\t%s\t%s\t\t\n", g.name, mib(sum(g.list)), mib(private))
		fmt.Fprintf(t, "of one copy\t\t\t\t\t\t%.3f\t\t\t\n", float64(sum(g.list))/float64(copyOf))
	}
	return t.Flush()
}

func mib(n int64) string { return fmt.Sprintf("%.2f", inMiB(n)) }

func inMiB(n int64) float64 { return float64(n) / (1 << 20) }

// sum returns the bytes of the weights of all processes.
func sum(list []figures) (bytes int64) {
	for _, f := range list {
		bytes += f.weights()
	}
	return bytes
}

// own is the median over the processes of their private bytes.
func own(name string, list []figures) results.Named {
	var bytes []int64
	for _, f := range list {
		bytes = append(bytes, f.Own)
	}
	return results.Samples(name, 1.0/(1<<20), bytes)
}
