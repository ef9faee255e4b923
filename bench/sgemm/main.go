// Command sgemm holds Tenure's matrix products against ONNX Runtime's and
// against the machine.
//
//	go run ./sgemm [flags]
//
// Each product is a file of one MatMul node, its second operand a constant or
// an input. Between the engines' turns it measures how many multiply-adds the
// processor makes with the same instruction set and threads, and for products
// of one row, which read every number of b once, how fast that many numbers
// are read again and again.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/limits"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/memory"
)

func main() {
	engine.ServeIfAsked()
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// product is a matrix product: a of m by k, b of k by n.
type product struct {
	m, n, k  int
	constant bool // b is a weight
}

var sizes = []product{
	{m: 256, n: 256, k: 256},
	{m: 512, n: 512, k: 512},
	{m: 1024, n: 1024, k: 1024},
	{m: 128, n: 768, k: 768},
	{m: 128, n: 3072, k: 768},
	{m: 1, n: 3072, k: 768},
	{m: 64, n: 3136, k: 576},
}

// size is "MxNxK".
func (p product) size() string { return fmt.Sprintf("%dx%dx%d", p.m, p.n, p.k) }

func (p product) second() string {
	if p.constant {
		return "constant"
	}
	return "dynamic"
}

// operations counts a multiplication and an addition as two.
func (p product) operations() float64 { return 2 * float64(p.m) * float64(p.n) * float64(p.k) }

func (p product) build() (*onnxfile.Graph, error) {
	g := onnxfile.New(13)
	g.Input("a", onnxfile.F32, p.m, p.k)
	if p.constant {
		g.Weight("b", onnxfile.Uniform(1, 1), p.k, p.n)
	} else {
		g.Input("b", onnxfile.F32, p.k, p.n)
	}
	g.Node("MatMul", []string{"a", "b"}, []string{"y"})
	g.Output("y", onnxfile.F32)
	return g, nil
}

// row is one product with one number of threads; speeds are operations a
// second.
type row struct {
	Size       string  `json:"size"`
	B          string  `json:"b"`
	CPU        string  `json:"cpu"`
	Threads    int     `json:"threads"`
	Tenure     float64 `json:"tenure"`
	ORT        float64 `json:"ort"`
	Peak       float64 `json:"peak"`           // multiply-adds of the same instruction set
	Read       float64 `json:"read,omitempty"` // of one row: operations a second if b is read as fast as memory gives it
	Difference float64 `json:"difference"`
	Others     float64 `json:"others"`
}

type report struct {
	Machine string    `json:"machine"`
	When    time.Time `json:"when"`
	ORT     string    `json:"ort"`
	Rows    []row     `json:"rows"`
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sgemm", flag.ExitOnError)
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	shapes := flags.String("sizes", "", "sizes MxNxK to run, by commas; all of the table when empty")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	o := contest.Options{Into: true}
	o.Flags(flags)
	flags.Parse(args)
	counts, err := contest.Threads(*threads)
	if err != nil {
		return err
	}
	chosen, err := choose(*shapes)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &report{Machine: contest.Machine(), When: time.Now().UTC().Truncate(time.Second)}
	for _, p := range chosen {
		if err := measure(r, p, dir, counts, o); err != nil {
			return fmt.Errorf("%s: %w", p.size(), err)
		}
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.table(out)
}

// choose returns the products of the sizes, each with b constant and dynamic.
func choose(names string) (list []product, err error) {
	picked := sizes
	if names != "" {
		picked = nil
		for _, name := range strings.Split(names, ",") {
			i := slices.IndexFunc(sizes, func(p product) bool { return p.size() == name })
			if i < 0 {
				return nil, fmt.Errorf("-sizes: got %q, want some of %v", name, all())
			}
			picked = append(picked, sizes[i])
		}
	}
	for _, p := range picked {
		p.constant = true
		list = append(list, p, product{m: p.m, n: p.n, k: p.k})
	}
	return list, nil
}

func all() (names []string) {
	for _, p := range sizes {
		names = append(names, p.size())
	}
	return names
}

func measure(r *report, p product, dir string, threads []int, o contest.Options) error {
	j, err := contest.Prepare(p.size(), filepath.Join(dir, p.size()+p.second()), p.build, nil)
	if err != nil {
		return err
	}
	level := limits.LevelOf(o.CPU)
	var numbers []float32 // as many as b has
	if p.m == 1 {
		buffer, err := memory.Alloc(4*p.k*p.n, memory.Activations)
		if err != nil {
			return err
		}
		defer buffer.Release()
		numbers = unsafe.Slice((*float32)(unsafe.Pointer(&buffer.Bytes()[0])), p.k*p.n)
		limits.Scale(numbers, 0, 1) // brings the pages in
	}
	for _, n := range threads {
		var peaks, reads []float64
		o.Between = func() {
			peaks = append(peaks, limits.FMA(level, n))
			if numbers != nil {
				reads = append(reads, p.operations()/fastest(func() time.Duration { return limits.Read(numbers, n) }).Seconds())
			}
		}
		got, err := j.Run(n, o)
		if err != nil {
			return err
		}
		r.ORT = got.ORT.About
		speed := func(s contest.Side) float64 { return p.operations() / float64(s.Nanos) * 1e9 }
		row := row{Size: p.size(), B: p.second(), CPU: level.String(), Threads: n, Tenure: speed(got.Tenure), ORT: speed(got.ORT),
			Peak: contest.Median(peaks), Difference: got.Difference, Others: got.Others}
		if len(reads) > 0 {
			row.Read = contest.Median(reads)
		}
		fmt.Fprintf(os.Stderr, "%s %s, %d threads: %.1f GFLOP/s, %.1f\n", row.Size, row.B, n, row.Tenure/1e9, row.ORT/1e9)
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// fastest is the least of a few times: what is read first comes from further
// away.
func fastest(f func() time.Duration) time.Duration {
	least := f()
	for range 9 {
		least = min(least, f())
	}
	return least
}

// table prints the rows; speeds are GFLOP/s.
func (r *report) table(out io.Writer) error {
	fmt.Fprintf(out, "%s, %s\n%s\n\n", r.Machine, r.When.Format(time.RFC3339), r.ORT)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "MxNxK\tB\tset\tthreads\tTenure GFLOP/s\tORT\tTenure/ORT\tpeak\tTenure/peak\tof reading b\tdifference\tothers\t")
	for _, row := range r.Rows {
		reading := "-"
		if row.Read > 0 {
			reading = fmt.Sprintf("%.2f", row.Tenure/row.Read)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.1f\t%.1f\t%.2f\t%.1f\t%.2f\t%s\t%.1e\t%.1f\t\n", row.Size, row.B, row.CPU, row.Threads,
			row.Tenure/1e9, row.ORT/1e9, row.Tenure/row.ORT, row.Peak/1e9, row.Tenure/row.Peak, reading, row.Difference, row.Others)
	}
	return t.Flush()
}
