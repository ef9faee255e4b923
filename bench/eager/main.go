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

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
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

// options are the flags.
type options struct {
	python, script string
	chosen         *regexp.Regexp
	sizes          []int
	forms          []string
	turns          contest.Options
	above          float64
	output         results.Output
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
	flags.Float64Var(&o.above, "above", 0, "print only the rows in which Tenure takes at least so many times as long as numpy")
	o.output.Flags(flags)
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
	if err == nil {
		err = c.all()
	}
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	return o.output.Write(out, c.result, func(w io.Writer) error {
		return c.result.WriteText(w, func(row results.Row) bool { return row.Figures["ratio"].Median >= o.above })
	})
}

// contestants are the three processes.
type contestants struct {
	options
	files           files
	dir             string
	one, two, numpy *engine.Process
	result          *results.Result // begun by the first row
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

func (c *contestants) all() error {
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
				if err := c.measure(op, n, form, i == 0); err != nil {
					return fmt.Errorf("%s, %d elements, %s: %w", op.name, n, form, err)
				}
			}
		}
	}
	if ran == 0 {
		return fmt.Errorf("-operations: got %q, want something that a name of the table has in it", c.chosen)
	}
	return nil
}

// measure adds one row to the result; compared says that the results are held
// against one another first.
func (c *contestants) measure(op operation, n int, form string, compared bool) error {
	q := engine.Request{Do: "load", Model: op.name, Into: form == "into", Outputs: []string{op.fresh, op.into}}
	bytes := int64(0) // of operands and result
	for i, x := range op.operands(n) {
		file, err := c.files.of(x, i)
		if err != nil {
			return err
		}
		bytes += int64(x.bytes())
		q.Inputs = append(q.Inputs, engine.Input{Name: x.rule, Type: x.dt.String(), Dims: x.dims, File: file})
	}
	sides := make([]contest.Side, 3)
	var players []contest.Player
	for i, p := range []*engine.Process{c.one, c.two, c.numpy} {
		reply, err := p.Ask(q)
		if err != nil {
			return err
		}
		if p == c.numpy && c.result == nil {
			c.result = results.New("eager", map[string]string{"numpy": contest.Version(reply.About)}, "operation", "elements", "form")
		}
		players = append(players, contest.Player{Process: p, Side: &sides[i]})
	}
	result, err := c.one.Ask(engine.Request{Do: "outputs", Dir: c.dir})
	if err != nil {
		return err
	}
	bytes += result.After
	difference := 0.0
	if compared {
		if difference, err = c.compare(result); err != nil {
			return err
		}
	}
	if err := contest.Alternate(c.turns, players...); err != nil {
		return err
	}
	one, two, numpy := sides[0], sides[1], sides[2]
	fmt.Fprintf(os.Stderr, "%s, %d, %s: %.3f, %.3f and %.3f ms, %.2f\n", op.name, n, form,
		contest.MS(one.Nanos), contest.MS(two.Nanos), contest.MS(numpy.Nanos), contest.Ratio(one.Nanos, numpy.Nanos))
	c.result.Add([]string{op.name, size(n), form}, results.Samples("Tenure GB/s", 1, speeds(bytes, one)), results.Samples("two threads GB/s", 1, speeds(bytes, two)),
		results.Samples("numpy GB/s", 1, speeds(bytes, numpy)), results.Ratios("ratio", one.Turns(), numpy.Turns()), results.Once("difference", difference))
	return nil
}

// speeds are the bytes that were moved in a nanosecond, turn by turn.
func speeds(bytes int64, s contest.Side) (list []float64) {
	for _, nanos := range s.Turns() {
		list = append(list, float64(bytes)/float64(max(nanos, 1)))
	}
	return list
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

func size(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d Mi", n>>20)
	}
	return fmt.Sprintf("%d Ki", n>>10)
}
