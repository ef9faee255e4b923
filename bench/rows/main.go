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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
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
	ordinary  []time.Duration
	streaming []time.Duration
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
	times := func(streaming bool) time.Duration {
		loop(streaming)
		var list []time.Duration
		for end := time.Now().Add(turn); len(list) == 0 || time.Now().Before(end); {
			list = append(list, loop(streaming))
		}
		return contest.Median(list)
	}
	l.ordinary = append(l.ordinary, times(false))
	if !op.given {
		l.streaming = append(l.streaming, times(true))
	}
}

// row is one operator in one form with one number of threads; times are
// nanoseconds.
type row struct {
	Operator   string  `json:"operator"`
	Form       string  `json:"form"`
	Threads    int     `json:"threads"`
	Tenure     int64   `json:"tenure"`
	ORT        int64   `json:"ort"`
	Ordinary   int64   `json:"ordinary"`            // the limit with ordinary stores
	Streaming  int64   `json:"streaming,omitempty"` // the limit with stores that pass the caches
	Difference float64 `json:"difference"`
	Others     float64 `json:"others"`
}

type report struct {
	Machine  string    `json:"machine"`
	When     time.Time `json:"when"`
	ORT      string    `json:"ort"`
	Elements int       `json:"elements"`
	Rows     []row     `json:"rows"`
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("rows", flag.ExitOnError)
	threads := flags.String("threads", "1,2", "numbers of threads, by commas")
	names := flags.String("operators", "", "operators to run, by commas; all when empty")
	elements := flags.Int("elements", 64<<20, "floats in each operand")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
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
	r := &report{Machine: contest.Machine(), When: time.Now().UTC().Truncate(time.Second), Elements: *elements}
	for _, op := range chosen {
		if err := measure(r, op, dir, counts, o); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.table(out)
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

func measure(r *report, op operator, dir string, threads []int, o contest.Options) error {
	becomes := map[string]string{}
	if op.given {
		becomes["x"] = "y"
	}
	dir = filepath.Join(dir, op.name+op.form())
	defer os.RemoveAll(dir)
	j, err := contest.Prepare(op.name, dir, func() (*onnxfile.Graph, error) { return op.build(r.Elements) }, becomes)
	if err != nil {
		return err
	}
	for _, n := range threads {
		l, err := newLimit(r.Elements)
		if err != nil {
			return err
		}
		o.Between = func() { l.measure(op, n, time.Duration(o.Millis)*time.Millisecond) }
		got, err := j.Run(n, o)
		err = errors.Join(err, l.buffer.Release())
		if err != nil {
			return err
		}
		r.ORT = got.ORT.About
		row := row{Operator: op.name, Form: op.form(), Threads: n, Tenure: got.Tenure.Nanos, ORT: got.ORT.Nanos,
			Ordinary: int64(contest.Median(l.ordinary)), Difference: got.Difference, Others: got.Others}
		if len(l.streaming) > 0 {
			row.Streaming = int64(contest.Median(l.streaming))
		}
		fmt.Fprintf(os.Stderr, "%s %s, %d threads: %.2f ms, %.2f ms, limit %.2f ms\n", row.Operator, row.Form, n,
			contest.MS(row.Tenure), contest.MS(row.ORT), contest.MS(row.Ordinary))
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// table prints the rows. A part of a limit is the limit's time over Tenure's.
func (r *report) table(out io.Writer) error {
	fmt.Fprintf(out, "%s, %s\n%s; %d elements\n\n", r.Machine, r.When.Format(time.RFC3339), r.ORT, r.Elements)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operator\tform\tthreads\tTenure ms\tORT ms\tTenure/ORT\tlimit ms\tof limit\tstreaming ms\tof streaming\tdifference\tothers\t")
	for _, row := range r.Rows {
		streaming := "-\t-"
		if row.Streaming > 0 {
			streaming = fmt.Sprintf("%.2f\t%.2f", contest.MS(row.Streaming), contest.Ratio(row.Streaming, row.Tenure))
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%.1e\t%.1f\t\n", row.Operator, row.Form, row.Threads,
			contest.MS(row.Tenure), contest.MS(row.ORT), contest.Ratio(row.Tenure, row.ORT),
			contest.MS(row.Ordinary), contest.Ratio(row.Ordinary, row.Tenure), streaming, row.Difference, row.Others)
	}
	return t.Flush()
}
