// Command neighbour shows what a second thread costs and gains beside a
// process that keeps one processor busy.
//
//	go run ./neighbour [flags]
//
// It starts a process that does nothing but count, and beside it Tenure twice,
// with one thread and with two; these take turns of one run, after one that is
// not counted. A work-sharing pool should not be slower with two threads than
// with one. ONNX Runtime does the same afterwards.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
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

// row is one model with one engine; times are nanoseconds.
type row struct {
	Model  string `json:"model"`
	Engine string `json:"engine"`
	One    int64  `json:"one"` // median with one thread
	Two    int64  `json:"two"` // with two
}

type report struct {
	Machine string    `json:"machine"`
	When    time.Time `json:"when"`
	Runs    int       `json:"runs"`
	Alone   bool      `json:"alone"` // without the busy process
	Rows    []row     `json:"rows"`
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("neighbour", flag.ExitOnError)
	names := flags.String("models", "encoder,mlp", "models to run, by commas")
	lights := flags.String("light", strings.Join(suite.LightFolders(), ","), "folders with light models, by commas")
	alone := flags.Bool("alone", false, "without the busy process, for comparison")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
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
	r := &report{Machine: contest.Machine(), When: time.Now().UTC().Truncate(time.Second), Runs: o.Turns, Alone: *alone}
	for _, m := range chosen {
		j, err := contest.Prepare(m.Name, filepath.Join(dir, m.Name), m.Build, m.Becomes)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		for _, name := range []string{"Tenure", "ONNX Runtime"} {
			row := row{Model: m.Name, Engine: name}
			if row.One, row.Two, err = pair(j, name, o); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			fmt.Fprintf(os.Stderr, "%s, %s: %.3f ms, %.3f ms\n", m.Name, name, contest.MS(row.One), contest.MS(row.Two))
			r.Rows = append(r.Rows, row)
		}
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.table(out)
}

// pair lets an engine with one thread and the same one with two take turns.
func pair(j *contest.Job, name string, o contest.Options) (one, two int64, err error) {
	var sides [2]contest.Side
	var players []contest.Player
	for i := range sides {
		p, err := o.Start(name)
		if err != nil {
			return 0, 0, err
		}
		defer p.Close()
		players = append(players, contest.Player{Process: p, Side: &sides[i]})
		if err := j.Load(players[i], i+1, o); err != nil {
			return 0, 0, err
		}
	}
	if err := contest.Alternate(o, players...); err != nil {
		return 0, 0, err
	}
	return sides[0].Nanos, sides[1].Nanos, nil
}

// table prints the rows.
func (r *report) table(out io.Writer) error {
	with := "beside one busy process"
	if r.Alone {
		with = "alone"
	}
	fmt.Fprintf(out, "%s, %s\n%s, medians of %d runs\n\n", r.Machine, r.When.Format(time.RFC3339), with, r.Runs)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "model\tengine\t1 thread ms\t2 threads ms\tratio\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.3f\t%.2f\t\n", row.Model, row.Engine, contest.MS(row.One), contest.MS(row.Two), contest.Ratio(row.Two, row.One))
	}
	return t.Flush()
}
