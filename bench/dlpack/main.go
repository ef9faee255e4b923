// Command dlpack holds what an exchange by DLPack costs against what nobody
// can do without, and against other libraries.
//
//	go run ./dlpack [-turns N] [-python EXECUTABLE]
//
// A case is a loop of many operations by 1, 2 and 8 goroutines or threads, each
// with a tensor of its own unless the name says shared. All cases take turns;
// the figure is the median over the turns, in nanoseconds per operation. Loops
// in C are compiled with gcc or another C compiler, and left out where there is
// none; so are the libraries that the Python of -python lacks.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/results"
)

// bench is a case: loop does n operations as worker w and returns how long
// they took. A case without threads runs alone.
type bench struct {
	name    string
	note    string
	alone   bool
	loop    func(w, n int) time.Duration
	n       int             // operations in a turn
	nanos   map[int]float64 // median by threads
	samples map[int][]float64
}

// perTurn is how many operations a turn has: as many exports of one tensor
// may be out at once.
const perTurn = 30000

var threadCounts = []int{1, 2, 8}

func main() {
	log.SetFlags(0)
	turns := flag.Int("turns", 21, "how often each case runs")
	python := flag.String("python", "python3", "a Python with numpy 2 and perhaps tvm-ffi")
	var output results.Output
	output.Flags(flag.CommandLine)
	flag.Parse()
	if err := run(os.Stdout, *turns, *python, output); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer, turns int, python string, output results.Output) error {
	s, err := newSubjects(slices.Max(threadCounts))
	if err != nil {
		return err
	}
	defer s.close()
	cases := s.inGo()
	inC, err := s.inC()
	if err != nil {
		fmt.Fprintln(os.Stderr, "without C:", err)
	}
	cases = append(cases, inC...)
	others, err := s.others(python)
	if err != nil {
		fmt.Fprintln(os.Stderr, "without other libraries:", err)
	}
	cases = append(cases, others...)
	measure(cases, turns)
	if s.err != nil {
		return s.err
	}
	return output.Write(w, result(cases), func(w io.Writer) error { return report(w, cases) })
}

// measure lets the cases take turns.
func measure(cases []*bench, turns int) {
	for turn := range turns + 1 { // the first does not count
		for _, b := range cases {
			for _, threads := range threadCounts {
				if b.alone && threads > 1 {
					continue
				}
				took := b.turn(threads)
				if turn > 0 {
					b.samples[threads] = append(b.samples[threads], took)
				}
			}
		}
	}
	for _, b := range cases {
		for threads, all := range b.samples {
			b.nanos[threads] = contest.Median(all)
		}
	}
}

// turn returns the nanoseconds of one operation: the mean over the workers of
// what their loops took. A loop is shorter than a scheduler's slice, so with
// more workers than processors each still runs through.
func (b *bench) turn(threads int) float64 {
	start := make(chan struct{})
	done := make(chan time.Duration)
	for w := range threads {
		go func() {
			<-start
			done <- b.loop(w, b.n)
		}()
	}
	close(start)
	var all time.Duration
	for range threads {
		all += <-done
	}
	return float64(all) / float64(b.n*threads)
}

func newBench(name, note string, n int, loop func(w, n int) time.Duration) *bench {
	return &bench{name: name, note: note, n: n, loop: loop, nanos: map[int]float64{}, samples: map[int][]float64{}}
}

// result is the figures in the form of all benchmarks.
func result(cases []*bench) *results.Result {
	r := results.New("dlpack", nil, "case", "threads")
	base := cases[0].samples[1]
	for _, b := range cases {
		for _, threads := range threadCounts {
			if all := b.samples[threads]; len(all) > 0 {
				r.Add([]string{b.name, strconv.Itoa(threads)}, results.Samples("ns", 1, all), results.Ratios("of the base", all, base))
			}
		}
	}
	return r
}

func report(w io.Writer, cases []*bench) error {
	base := cases[0].nanos[1]
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\t1 thread\t2\t8\tratio\t ")
	for _, b := range cases {
		fmt.Fprintf(t, "%s\t", b.name)
		for _, threads := range threadCounts {
			if ns, ok := b.nanos[threads]; ok {
				fmt.Fprintf(t, "%.2f\t", ns)
			} else {
				fmt.Fprint(t, "\t")
			}
		}
		fmt.Fprintf(t, "%.2f\t  %s\n", b.nanos[1]/base, b.note)
	}
	return t.Flush()
}
