// Command rows holds Tenure's elementwise functions, softmax and layer
// normalisation, on arrays far larger than the caches, against ONNX Runtime
// and against the memory.
//
//	go run ./rows [flags]
//
// Each is a file of one node. Its output goes into the same bytes on every
// run ("into"), or into those of its input ("given"). The limit of the first
// form is a copy of as many elements, of an addition the triad a+s*b, and of
// the second form a scaling in place: each moves the bytes that the operator
// must move and computes next to nothing. The loops of the limit run between
// the engines' turns, with ordinary stores, and out of place also with stores
// that pass the caches.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
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

// width is the length of the rows of softmax and layer normalisation.
const width = 1024

// operator is one row of the table, in one form.
type operator struct {
	name  string
	node  string
	attrs []onnxfile.Attr
	two   bool // it has a second operand of the same size
	norm  bool // it has a scale and a shift
	given bool // the input's bytes become the output's
}

// operators lists them. Exp in place is left out: its values overflow after a
// few runs over the same bytes.
var operators = []operator{
	{name: "relu", node: "Relu"},
	{name: "relu", node: "Relu", given: true},
	{name: "add", node: "Add", two: true},
	{name: "add", node: "Add", two: true, given: true},
	{name: "exp", node: "Exp"},
	{name: "gelu", node: "Gelu"},
	{name: "gelu", node: "Gelu", given: true},
	{name: "softmax", node: "Softmax", attrs: []onnxfile.Attr{onnxfile.Int("axis", -1)}},
	{name: "softmax", node: "Softmax", attrs: []onnxfile.Attr{onnxfile.Int("axis", -1)}, given: true},
	{name: "layernorm", node: "LayerNormalization", norm: true},
	{name: "layernorm", node: "LayerNormalization", norm: true, given: true},
}

func (op operator) form() string {
	if op.given {
		return "given"
	}
	return "into"
}

func (op operator) build(elements int) (*onnxfile.Graph, error) {
	if elements < width || elements%width != 0 {
		return nil, fmt.Errorf("-elements: got %d, want a multiple of %d", elements, width)
	}
	g := onnxfile.New(20)
	in := []string{"x"}
	g.Input("x", onnxfile.F32, elements/width, width)
	if op.two {
		g.Input("z", onnxfile.F32, elements/width, width)
		in = append(in, "z")
	}
	if op.norm {
		g.Weight("scale", onnxfile.Between(1, 0.8, 1.2), width)
		g.Weight("shift", onnxfile.Uniform(2, 0.1), width)
		in = append(in, "scale", "shift")
	}
	g.Node(op.node, in, []string{"y"}, op.attrs...)
	g.Output("y", onnxfile.F32)
	return g, nil
}

// limit is the memory that the loops of the limit walk over.
type limit struct {
	buffer    *memory.Buffer
	x, y, z   []float32
	ordinary  []int64 // nanoseconds, a median for each turn
	streaming []int64
}

// apart is how many elements lie between the slices, as between large buffers
// of the runtime. At a distance of a multiple of 2^28 bytes, or a few lines
// more, they push each other out of Zen's first cache, and the triad takes
// half as long again: no limit of the memory.
const apart = 8 << 10

func newLimit(elements int) (*limit, error) {
	buffer, err := memory.Alloc(4*3*(elements+apart), memory.Activations)
	if err != nil {
		return nil, err
	}
	all := unsafe.Slice((*float32)(unsafe.Pointer(&buffer.Bytes()[0])), 3*(elements+apart))
	fill(all)
	part := func(i int) []float32 { return all[i*(elements+apart):][:elements] }
	return &limit{buffer: buffer, x: part(0), y: part(1), z: part(2)}, nil
}

// fill writes numbers as operands have them, from a sequence of Knuth's. Lines
// of zeros move faster.
func fill(x []float32) {
	bits := uint32(1)
	for i := range x {
		bits = bits*1664525 + 1013904223
		x[i] = float32(int32(bits)) / (1 << 31)
	}
}

// measure times the operator's limit as the engines are timed: one run that
// is not counted, then runs for the length of a turn.
func (l *limit) measure(op operator, threads int, turn time.Duration) {
	loop := func(streaming bool) time.Duration {
		switch {
		case op.two && op.given:
			return limits.Triad(l.x, l.x, l.z, 0.5, threads, streaming) // reads both and writes one of them
		case op.given:
			return limits.Scale(l.x, 1, threads)
		case op.two:
			return limits.Triad(l.y, l.x, l.z, 0.5, threads, streaming)
		}
		return limits.Copy(l.y, l.x, threads, streaming)
	}
	times := func(streaming bool) int64 {
		loop(streaming)
		var list []time.Duration
		for end := time.Now().Add(turn); len(list) == 0 || time.Now().Before(end); {
			list = append(list, loop(streaming))
		}
		return int64(contest.Median(list))
	}
	l.ordinary = append(l.ordinary, times(false))
	if !op.given {
		l.streaming = append(l.streaming, times(true))
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("rows", flag.ExitOnError)
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	names := flags.String("operators", "", "operators to run, by commas; all when empty")
	elements := flags.Int("elements", 64<<20, "floats in each operand")
	var output results.Output
	output.Flags(flags)
	o := contest.Options{Into: true}
	o.Flags(flags)
	flags.Parse(args)
	counts, err := contest.Threads(*threads)
	if err != nil {
		return err
	}
	chosen, err := choose(*names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var result *results.Result
	for _, op := range chosen {
		if err := measure(&result, op, dir, *elements, counts, o); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
	}
	return output.Write(out, result, nil)
}

func choose(names string) (list []operator, err error) {
	if names == "" {
		return operators, nil
	}
	for _, name := range strings.Split(names, ",") {
		before := len(list)
		for _, op := range operators {
			if op.name == name {
				list = append(list, op)
			}
		}
		if len(list) == before {
			return nil, fmt.Errorf("-operators: got %q, want relu, add, exp, gelu, softmax or layernorm", name)
		}
	}
	return list, nil
}

// measure adds the rows of an operator to the result, which the first one
// begins.
func measure(result **results.Result, op operator, dir string, elements int, threads []int, o contest.Options) error {
	becomes := map[string]string{}
	if op.given {
		becomes["x"] = "y"
	}
	dir = filepath.Join(dir, op.name+op.form())
	defer os.RemoveAll(dir)
	j, err := contest.Prepare(op.name, dir, func() (*onnxfile.Graph, error) { return op.build(elements) }, becomes)
	if err != nil {
		return err
	}
	for _, n := range threads {
		l, err := newLimit(elements)
		if err != nil {
			return err
		}
		o.Between = func() { l.measure(op, n, time.Duration(o.Millis)*time.Millisecond) }
		got, err := j.Run(n, o)
		err = errors.Join(err, l.buffer.Release())
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s %s, %d threads: %.2f ms, %.2f ms, limit %.2f ms\n", op.name, op.form(), n,
			contest.MS(got.Tenure.Nanos), contest.MS(got.ORT.Nanos), contest.MS(contest.Median(l.ordinary)))
		if *result == nil {
			*result = results.New("rows", map[string]string{"ONNX Runtime": contest.Version(got.ORT.About)}, "operator", "form", "threads")
			(*result).Note = fmt.Sprintf("%d floats in each operand", elements)
		}
		(*result).Add([]string{op.name, op.form(), strconv.Itoa(n)}, l.figures(got)...)
	}
	return nil
}

// figures are those of one row. A part of a limit is the limit's time over
// Tenure's.
func (l *limit) figures(got contest.Row) []results.Named {
	ours := got.Tenure.Turns()
	list := append(contest.Times(got.Tenure, got.ORT),
		results.Samples("limit ms", 1e-6, l.ordinary), results.Ratios("of the limit", l.ordinary, ours))
	if len(l.streaming) > 0 {
		list = append(list, results.Samples("streaming ms", 1e-6, l.streaming), results.Ratios("of streaming", l.streaming, ours))
	}
	return append(list, results.Once("difference", got.Difference), results.Once("others", got.Others))
}
