// Command eager holds operations of package eager against numpy's.
//
//	go run ./eager [flags]
//
// Both sides make the same arrays and compute one operation, a run at a time:
// Tenure in two processes, one of one thread and one of two, numpy in one. In
// the form "into" the result lies in the same bytes on every run: numpy's out,
// and for Tenure an arena that the result before came back to. In the form
// "fresh" it is made and dropped. Where numpy cannot write into an array that
// is there, "into" is left out. Results are compared at the first size.
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
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/dtype"
)

func main() {
	log.SetFlags(0)
	if os.Args[len(os.Args)-1] == engine.ServeArg {
		if err := engine.Answer(os.Stdin, os.Stdout, new(server).answer); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// row is one operation at one size in one form; times are nanoseconds.
type row struct {
	Operation  string  `json:"operation"`
	Form       string  `json:"form"`
	Elements   int     `json:"elements"`
	Bytes      int64   `json:"bytes"` // of operands and result
	One        int64   `json:"one"`   // Tenure, one thread
	Two        int64   `json:"two"`
	Numpy      int64   `json:"numpy"`
	Difference float64 `json:"difference"`
}

func (r row) ratio() float64 { return contest.Ratio(r.One, r.Numpy) }

type report struct {
	Machine string    `json:"machine"`
	When    time.Time `json:"when"`
	Numpy   string    `json:"numpy"`
	Rows    []row     `json:"rows"`
}

// options are the flags.
type options struct {
	python, script string
	chosen         *regexp.Regexp
	sizes          []int
	forms          []string
	turns          contest.Options
	above          float64
	asJSON         bool
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("eager", flag.ContinueOnError)
	flags.StringVar(&o.python, "python", filepath.Join(contest.DefaultVenv(), "bin", "python"), "interpreter with numpy: see ort.py install")
	flags.StringVar(&o.script, "peer", filepath.Join("eager", "peer.py"), "numpy's side")
	names := flags.String("operations", "", "operations to run, as a regular expression; all when empty")
	sizes := flags.String("elements", "65536,16777216", "sizes, by commas; powers of two from 65536 up")
	forms := flags.String("forms", "into,fresh", "forms, by commas")
	flags.IntVar(&o.turns.Turns, "turns", 4, "turns of each side")
	flags.IntVar(&o.turns.Millis, "ms", 15, "length of a turn in milliseconds: one run at least")
	flags.Float64Var(&o.above, "above", 0, "print the rows only in which Tenure takes so many times as long as numpy")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON instead of a table")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.chosen, err = regexp.Compile(*names); err != nil {
		return o, fmt.Errorf("-operations: %w", err)
	}
	for _, word := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1<<16 || n&(n-1) != 0 {
			return o, fmt.Errorf("-elements: got %q, want powers of two from 65536 up", word)
		}
		o.sizes = append(o.sizes, n)
	}
	for _, word := range strings.Split(*forms, ",") {
		if word != "into" && word != "fresh" {
			return o, fmt.Errorf("-forms: got %q, want into or fresh", word)
		}
		o.forms = append(o.forms, word)
	}
	return o, nil
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &contestants{options: o, files: files{dir, map[string]string{}}, dir: dir}
	err = c.start()
	r := &report{Machine: contest.Machine(), When: time.Now().UTC().Truncate(time.Second)}
	if err == nil {
		err = c.all(r)
	}
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	if o.asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.table(out, o.above)
}

// contestants are the three processes.
type contestants struct {
	options
	files           files
	dir             string
	one, two, numpy *engine.Process
}

func (c *contestants) start() (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if c.one, err = engine.Start("Tenure", []string{self, engine.ServeArg}, []string{"GOMAXPROCS=1"}); err != nil {
		return err
	}
	if c.two, err = engine.Start("Tenure on two threads", []string{self, engine.ServeArg}, []string{"GOMAXPROCS=2"}); err != nil {
		return err
	}
	if c.numpy, err = engine.Start("numpy", []string{c.python, c.script, engine.ServeArg}, nil); err != nil {
		return fmt.Errorf("%w (python3 ort.py install installs it)", err)
	}
	return nil
}

func (c *contestants) close() (err error) {
	for _, p := range []*engine.Process{c.one, c.two, c.numpy} {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

func (c *contestants) all(r *report) error {
	ran := 0
	for _, op := range operations() {
		if !c.chosen.MatchString(op.name) {
			continue
		}
		ran++
		for i, n := range c.sizes {
			for _, form := range c.forms {
				if form == "into" && op.into == "" {
					continue
				}
				one, err := c.measure(op, n, form == "into", i == 0, r)
				if err != nil {
					return fmt.Errorf("%s, %d elements, %s: %w", op.name, n, form, err)
				}
				one.Form = form
				fmt.Fprintf(os.Stderr, "%s, %d, %s: %.3f, %.3f and %.3f ms, %.2f\n", op.name, n, form, contest.MS(one.One), contest.MS(one.Two), contest.MS(one.Numpy), one.ratio())
				r.Rows = append(r.Rows, one)
			}
		}
	}
	if ran == 0 {
		return fmt.Errorf("-operations: got %q, want something that a name of the table has in it", c.chosen)
	}
	return nil
}

// measure runs one row; compared says that the results are held against one
// another first.
func (c *contestants) measure(op operation, n int, into, compared bool, r *report) (row, error) {
	row := row{Operation: op.name, Elements: n}
	q := engine.Request{Do: "load", Model: op.name, Into: into, Outputs: []string{op.fresh, op.into}}
	for i, x := range op.operands(n) {
		file, err := c.files.of(x, i)
		if err != nil {
			return row, err
		}
		row.Bytes += int64(x.bytes())
		q.Inputs = append(q.Inputs, engine.Input{Name: x.rule, Type: x.dt.String(), Dims: x.dims, File: file})
	}
	sides := make([]contest.Side, 3)
	var players []contest.Player
	for i, p := range []*engine.Process{c.one, c.two, c.numpy} {
		reply, err := p.Ask(q)
		if err != nil {
			return row, err
		}
		if p == c.numpy {
			r.Numpy = reply.About
		}
		players = append(players, contest.Player{Process: p, Side: &sides[i]})
	}
	result, err := c.one.Ask(engine.Request{Do: "outputs", Dir: c.dir})
	if err != nil {
		return row, err
	}
	row.Bytes += result.After
	if compared {
		if row.Difference, err = c.compare(result); err != nil {
			return row, err
		}
	}
	if err := contest.Alternate(c.turns, players...); err != nil {
		return row, err
	}
	row.One, row.Two, row.Numpy = sides[0].Nanos, sides[1].Nanos, sides[2].Nanos
	return row, nil
}

// mostDifference is what results may differ by: sums of float32 are added up
// in other orders and types.
const mostDifference = 1e-4

func (c *contestants) compare(ours engine.Reply) (float64, error) {
	theirs, err := c.numpy.Ask(engine.Request{Do: "outputs", Dir: c.dir})
	if err != nil {
		return 0, err
	}
	dt, err := dtype.Parse(ours.About)
	if err != nil {
		return 0, err
	}
	x, err := os.ReadFile(ours.Files[0])
	if err != nil {
		return 0, err
	}
	y, err := os.ReadFile(theirs.Files[0])
	if err != nil {
		return 0, err
	}
	d, err := difference(dt, x, y)
	if err == nil && d > mostDifference {
		err = fmt.Errorf("got results that differ by %g, want at most %g", d, mostDifference)
	}
	return d, err
}

// table prints the rows. The ratio is Tenure's time on one thread over
// numpy's.
func (r *report) table(out io.Writer, above float64) error {
	fmt.Fprintf(out, "%s, %s\n%s\n\n", r.Machine, r.When.Format(time.RFC3339), r.Numpy)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\telements\tform\tTenure GB/s\ttwo threads\tnumpy\tTenure/numpy\tdifference\t")
	for _, row := range r.Rows {
		if row.ratio() < above {
			continue
		}
		speed := func(nanos int64) float64 { return float64(row.Bytes) / float64(max(nanos, 1)) }
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\t%.1f\t%.1f\t%.2f\t%.0e\t\n", row.Operation, size(row.Elements), row.Form,
			speed(row.One), speed(row.Two), speed(row.Numpy), row.ratio(), row.Difference)
	}
	return t.Flush()
}

func size(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d Mi", n>>20)
	}
	return fmt.Sprintf("%d Ki", n>>10)
}
