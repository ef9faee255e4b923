// Command neighbour measures a second thread beside a process that keeps one
// processor busy.
//
//	go run ./neighbour [flags]
//
// It starts a process that does nothing but count, and beside it Tenure twice,
// with one thread and with two; these take turns of one run, after one that is
// not counted. A work-sharing pool should not be slower with two threads than
// with one. ONNX Runtime does the same afterwards.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

// countArg is the argument of the busy process.
const countArg = "count"

func main() {
	engine.ServeIfAsked()
	countIfAsked()
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// countIfAsked turns the process into the busy one. It ends with its standard
// input.
func countIfAsked() {
	if os.Args[len(os.Args)-1] != countArg {
		return
	}
	go func() {
		io.Copy(io.Discard, os.Stdin) // an error ends it as well
		os.Exit(0)
	}()
	for n := uint64(1); ; n = n*3 + 1 {
		if n == 0 {
			fmt.Fprintln(os.Stderr, n) // never: the loop must not be empty
		}
	}
}

// busy starts the busy process and returns what ends it.
func busy() (end func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, countArg)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(in.Close(), cmd.Wait()) }, nil
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("neighbour", flag.ExitOnError)
	names := flags.String("models", "encoder,mlp", "models to run, by commas")
	lights := flags.String("light", strings.Join(suite.LightFolders(), ","), "folders with light models, by commas")
	alone := flags.Bool("alone", false, "without the busy process, for comparison")
	var output results.Output
	output.Flags(flags)
	o := contest.Options{}
	o.Flags(flags)
	flags.Set("turns", "30")
	flags.Set("ms", "0")
	flags.Parse(args)
	chosen, err := suite.Choose(suite.Models(strings.Split(*lights, ",")), *names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if !*alone {
		end, err := busy()
		if err != nil {
			return err
		}
		defer end()
	}
	type row struct {
		words []string
		sides [2]contest.Side
	}
	var rows []row
	versions := map[string]string{}
	for _, m := range chosen {
		j, err := contest.Prepare(m.Name, filepath.Join(dir, m.Name), m.Build, m.Becomes)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		for _, name := range []string{"Tenure", "ONNX Runtime"} {
			sides, err := pair(j, name, o)
			if err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			if name != "Tenure" {
				versions[name] = contest.Version(sides[0].About)
			}
			fmt.Fprintf(os.Stderr, "%s, %s: %.3f ms, %.3f ms\n", m.Name, name, contest.MS(sides[0].Nanos), contest.MS(sides[1].Nanos))
			rows = append(rows, row{[]string{m.Name, name}, sides})
		}
	}
	r := results.New("neighbour", versions, "model", "engine")
	r.Note = "beside a busy process"
	if *alone {
		r.Note = "without the busy process"
	}
	for _, row := range rows {
		one, two := row.sides[0].Turns(), row.sides[1].Turns()
		r.Add(row.words, results.Samples("1 thread ms", 1e-6, one), results.Samples("2 threads ms", 1e-6, two), results.Ratios("ratio", two, one))
	}
	return output.Write(out, r, nil)
}

// pair lets an engine with one thread and the same one with two take turns.
func pair(j *contest.Job, name string, o contest.Options) (sides [2]contest.Side, err error) {
	var players []contest.Player
	for i := range sides {
		p, err := o.Start(name)
		if err != nil {
			return sides, err
		}
		defer p.Close()
		players = append(players, contest.Player{Process: p, Side: &sides[i]})
		if err := j.Load(players[i], i+1, o); err != nil {
			return sides, err
		}
	}
	err = contest.Alternate(o, players...)
	return sides, err
}
