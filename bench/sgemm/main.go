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
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/limits"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/results"
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

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sgemm", flag.ExitOnError)
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	shapes := flags.String("sizes", "", "sizes MxNxK to run, by commas; all of the table when empty")
	var output results.Output
	output.Flags(flags)
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
	var result *results.Result
	for _, p := range chosen {
		if err := measure(&result, p, dir, counts, o); err != nil {
			return fmt.Errorf("%s: %w", p.size(), err)
		}
	}
	return output.Write(out, result, nil)
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

// measure adds the rows of a product to the result, which the first one begins.
func measure(result **results.Result, p product, dir string, threads []int, o contest.Options) error {
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
		fmt.Fprintf(os.Stderr, "%s %s, %d threads: %.1f GFLOP/s, %.1f\n", p.size(), p.second(), n,
			p.operations()/float64(got.Tenure.Nanos), p.operations()/float64(got.ORT.Nanos))
		if *result == nil {
			*result = results.New("sgemm", map[string]string{"ONNX Runtime": contest.Version(got.ORT.About)}, "MxNxK", "B", "set", "threads")
		}
		(*result).Add([]string{p.size(), p.second(), level.String(), strconv.Itoa(n)}, p.figures(got, peaks, reads)...)
	}
	return nil
}

// figures are those of one row. Peaks are multiply-adds a second of the same
// instruction set, turn by turn; reads, of a product of one row, are operations
// a second if b is read as fast as memory sends it.
func (p product) figures(got contest.Row, peaks, reads []float64) []results.Named {
	ours, theirs := p.speeds(got.Tenure), p.speeds(got.ORT)
	list := []results.Named{
		results.Samples("Tenure GFLOP/s", 1e-9, ours), results.Samples("ONNX Runtime GFLOP/s", 1e-9, theirs), results.Ratios("speed ratio", ours, theirs),
		results.Samples("peak GFLOP/s", 1e-9, peaks), results.Ratios("of the peak", ours, peaks),
	}
	if len(reads) > 0 {
		list = append(list, results.Ratios("of reading b", ours, reads))
	}
	return append(list, results.Once("difference", got.Difference), results.Once("others", got.Others))
}

// speeds are operations a second, turn by turn.
func (p product) speeds(s contest.Side) (list []float64) {
	for _, nanos := range s.Turns() {
		list = append(list, p.operations()/float64(nanos)*1e9)
	}
	return list
}

// fastest is the least of a few times: the first one also reads its data from
// further away.
func fastest(f func() time.Duration) time.Duration {
	least := f()
	for range 9 {
		least = min(least, f())
	}
	return least
}
