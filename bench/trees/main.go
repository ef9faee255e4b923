// Command trees measures an ensemble of decision trees in Tenure, in ONNX
// Runtime, and in the Go library leaves.
//
//	go run ./trees [flags]
//
// The trees are complete, and drawn. Tenure and ONNX Runtime run in processes
// of their own, leaves in that of the command, which does nothing meanwhile.
// All take turns. README.md describes how to install ONNX Runtime.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dmitryikh/leaves"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/results"
)

func main() {
	log.SetFlags(0)
	engine.ServeIfAsked()
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// rest is the pause between turns: see contest.
const rest = 15 * time.Millisecond

// options are the flags.
type options struct {
	contest.Options
	forest forest
	output results.Output
}

func run(args []string, out io.Writer) error {
	o := options{forest: forest{features: 30}}
	flags := flag.NewFlagSet("trees", flag.ContinueOnError)
	rows := flags.String("rows", "1,1000", "numbers of rows, by commas")
	counts := flags.String("threads", "1,2", "numbers of threads, by commas")
	flags.IntVar(&o.forest.trees, "trees", 500, "number of trees")
	flags.IntVar(&o.forest.depth, "depth", 8, "depth of the trees")
	o.output.Flags(flags)
	o.Options.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	threads, err := contest.Threads(*counts)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.forest.draw()
	var r *results.Result
	for _, word := range strings.Split(*rows, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-rows: got %q, want numbers from 1 up", *rows)
		}
		for _, t := range threads {
			m := &measurement{options: o, dir: filepath.Join(dir, fmt.Sprint(n, "-", t)), rows: n, threads: t}
			if err := m.measure(); err != nil {
				return fmt.Errorf("%d rows: %w", n, err)
			}
			if r == nil {
				r = results.New("trees", map[string]string{"ONNX Runtime": m.version, "leaves": leavesVersion}, "rows", "threads")
			}
			r.Add([]string{fmt.Sprint(n), fmt.Sprint(t)}, m.figures()...)
		}
	}
	return o.output.Write(out, r, nil)
}

// leavesVersion is that of go.mod.
const leavesVersion = "v0.0.0-20230708180554-25d19a787328"

// measurement is one number of rows with one number of threads.
type measurement struct {
	options
	dir           string
	rows, threads int
	version       string // of ONNX Runtime

	tenure, ort, leaves []int64 // nanoseconds of a run, a median per turn
	difference, largest float64
}

func (m *measurement) measure() error {
	job, err := contest.Prepare("trees", m.dir, func() (*onnxfile.Graph, error) { return m.forest.graph(m.rows), nil }, nil)
	if err != nil {
		return err
	}
	var sides [2]contest.Side
	var players []contest.Player
	var replies [2]engine.Reply
	for i, name := range []string{"Tenure", "ONNX Runtime"} {
		p, err := m.Start(name)
		if err != nil {
			return err
		}
		defer p.Close()
		players = append(players, contest.Player{Process: p, Side: &sides[i]})
		if err := job.Load(players[i], m.threads, m.Options); err != nil {
			return err
		}
		out := filepath.Join(m.dir, fmt.Sprint("out", i))
		if err := os.Mkdir(out, 0o777); err != nil {
			return err
		}
		r, err := p.Ask(engine.Request{Do: "outputs", Dir: out})
		if err != nil {
			return err
		}
		replies[i] = r
	}
	m.version = contest.Version(sides[1].About)
	if m.difference, m.largest, err = contest.Compare(replies[0], replies[1]); err != nil {
		return err
	}
	predict, err := m.loadLeaves(job.File(), replies[1].Files[0])
	if err != nil {
		return err
	}
	return m.alternate(players, predict)
}

// loadLeaves loads the trees into leaves, holds its results to those of ONNX
// Runtime, and returns what computes them.
func (m *measurement) loadLeaves(model, want string) (func(), error) {
	folder := filepath.Dir(model)
	text := filepath.Join(folder, "model.txt")
	if err := os.WriteFile(text, m.forest.text(), 0o666); err != nil {
		return nil, err
	}
	ensemble, err := leaves.LGEnsembleFromFile(text, false)
	if err != nil {
		return nil, err
	}
	input, err := floats(filepath.Join(folder, "input0"))
	if err != nil {
		return nil, err
	}
	x, y := make([]float64, len(input)), make([]float64, m.rows)
	for i, v := range input {
		x[i] = float64(v)
	}
	predict := func() {
		if err = ensemble.PredictDense(x, m.rows, m.forest.features, y, 0, m.threads); err != nil {
			panic("BUG: leaves: " + err.Error()) // it has run on the same rows
		}
	}
	if err := ensemble.PredictDense(x, m.rows, m.forest.features, y, 0, m.threads); err != nil {
		return nil, err
	}
	others, err := floats(want)
	if err != nil {
		return nil, err
	}
	for i, v := range others {
		if d := math.Abs(y[i] - float64(v)); d > 1e-3 {
			return nil, fmt.Errorf("row %d: got %v from leaves and %v from ONNX Runtime", i, y[i], v)
		}
	}
	return predict, nil
}

// alternate lets all three run in turn.
func (m *measurement) alternate(players []contest.Player, predict func()) error {
	for turn := range m.Turns {
		for i := range players {
			at := (turn + i) % len(players)
			time.Sleep(rest)
			r, err := players[at].Ask(engine.Request{Do: "run", Milliseconds: m.Millis, Runs: 1 << 20})
			if err != nil {
				return err
			}
			list := []*[]int64{&m.tenure, &m.ort}[at]
			*list = append(*list, contest.Median(r.Nanos))
		}
		time.Sleep(rest)
		m.leaves = append(m.leaves, contest.Median(repeat(m.Millis, predict)))
	}
	return nil
}

// repeat calls f once untimed and then until the time is over, and returns the
// nanoseconds of each call.
func repeat(millis int, f func()) (nanos []int64) {
	f()
	end := time.Now().Add(time.Duration(millis) * time.Millisecond)
	for len(nanos) == 0 || time.Now().Before(end) {
		start := time.Now()
		f()
		nanos = append(nanos, time.Since(start).Nanoseconds())
	}
	return nanos
}

func (m *measurement) figures() []results.Named {
	return []results.Named{
		results.Samples("Tenure µs", 1e-3, m.tenure), results.Samples("ONNX Runtime µs", 1e-3, m.ort), results.Samples("leaves µs", 1e-3, m.leaves),
		results.Ratios("Tenure / ONNX Runtime", m.tenure, m.ort), results.Ratios("Tenure / leaves", m.tenure, m.leaves),
		results.Once("difference", m.difference), results.Once("of", m.largest),
	}
}
