package contest

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
)

// Side is what one engine showed. Sizes are bytes that were resident in the
// engine's process.
type Side struct {
	About  string
	Nanos  int64 // median over the turns of each turn's median
	Runs   int   // timed runs
	Base   int64 // libraries and inputs are loaded, the model is not
	Loaded int64 // the model is loaded
	Load   int64 // nanoseconds that loading took
	First  int64 // nanoseconds from the file to the first result
	Idle   int64 // just before the first run
	Peak   int64 // the high-water mark of the first runs
	turns  []int64
}

// Took is the peak of the first runs above the process without its model:
// weights, workspace and outputs.
func (s Side) Took() int64 { return s.Peak - s.Base }

// Turns are the medians of the turns, in nanoseconds.
func (s Side) Turns() []int64 { return s.turns }

// Grew is the peak of the first runs above the process with its model loaded.
func (s Side) Grew() int64 { return s.Peak - s.Idle }

// Row is one model with one number of threads.
type Row struct {
	Model    string
	Held     string // how Tenure held the weights
	Threads  int
	CPU      string // what Tenure's instruction set was limited to
	Tenure   Side
	ORT      Side
	OpenVINO Side  // zero where it did not take part
	Without  error // why OpenVINO did not take part, if it was asked to
	Weights  int64 // in the file; of a model of the zoo the size of the file
	// The largest difference of the outputs, the input of a last Softmax among
	// them, and the largest number in the output where it is.
	Difference float64
	Largest    float64
	Others     float64 // processors that other processes kept busy

	Calls []engine.Call // of Tenure's program, with -calls
}

// name is the model with the options that are unusual in its row.
func (r Row) name() string {
	if r.Held == "compressed" {
		return r.Model + ", compressed"
	}
	return r.Model
}

// Progress is a row in few words.
func (r Row) Progress() string {
	if r.OpenVINO.Nanos == 0 {
		text := fmt.Sprintf("%s, %d threads: %.3f ms, %.3f ms, ratio %.2f", r.name(), r.Threads, MS(r.Tenure.Nanos), MS(r.ORT.Nanos), Ratio(r.Tenure.Nanos, r.ORT.Nanos))
		if r.Without != nil {
			text += " (without " + strings.SplitN(r.Without.Error(), "\n", 2)[0] + ")"
		}
		return text
	}
	return fmt.Sprintf("%s, %d threads: %.3f ms, ONNX Runtime %.3f ms, OpenVINO %.3f ms, ratio to the better %.2f",
		r.name(), r.Threads, MS(r.Tenure.Nanos), MS(r.ORT.Nanos), MS(r.OpenVINO.Nanos), Ratio(r.Tenure.Nanos, r.Better().Nanos))
}

// Better is the faster of the opponents that took part. ONNX Runtime has no
// option that limits its instruction set, so it is none beside a Tenure that is
// limited, if OpenVINO is.
func (r Row) Better() Side {
	limited := r.CPU == "avx2" || r.CPU == "portable"
	if r.OpenVINO.Nanos > 0 && (limited || r.OpenVINO.Nanos < r.ORT.Nanos) {
		return r.OpenVINO
	}
	return r.ORT
}

// Version is what an engine called itself at the end of its name: "1.32.0" of
// "ONNX Runtime 1.32.0, one thread".
func Version(about string) string {
	name, _, _ := strings.Cut(about, ",")
	return name[strings.LastIndexByte(name, ' ')+1:]
}

// Result makes one result of a command's rows.
func Result(benchmark string, rows []Row) *results.Result {
	versions := map[string]string{}
	if len(rows) > 0 {
		versions["ONNX Runtime"] = Version(rows[0].ORT.About)
	}
	for _, row := range rows {
		if row.OpenVINO.About != "" {
			versions["OpenVINO"] = Version(row.OpenVINO.About)
		}
	}
	r := results.New(benchmark, versions, "model", "weights", "threads")
	for _, row := range rows {
		r.Add([]string{row.Model, cmp.Or(row.Held, "mapped"), strconv.Itoa(row.Threads)}, row.figures()...)
	}
	return r
}

// figures are those of a row.
func (r Row) figures() []results.Named {
	a, b, c := r.Tenure, r.ORT, r.OpenVINO
	list := Times(a, b)
	if c.Nanos > 0 {
		list = append(list, results.Samples("OpenVINO ms", 1e-6, c.turns), results.Ratios("to OpenVINO", a.turns, c.turns),
			results.Ratios("to the better", a.turns, r.Better().turns))
	}
	list = append(list,
		results.Once("Tenure peak MiB", mib(a.Took())), results.Once("ONNX Runtime peak MiB", mib(b.Took())), results.Once("peak ratio", Ratio(a.Took(), b.Took())))
	if c.Nanos > 0 {
		list = append(list, results.Once("OpenVINO peak MiB", mib(c.Took())))
	}
	list = append(list,
		results.Once("Tenure growth MiB", mib(a.Grew())), results.Once("ONNX Runtime growth MiB", mib(b.Grew())),
		results.Once("Tenure load ms", MS(a.Load)), results.Once("ONNX Runtime load ms", MS(b.Load)),
		results.Once("Tenure to first result ms", MS(a.First)), results.Once("ONNX Runtime to first result ms", MS(b.First)))
	if c.Nanos > 0 {
		list = append(list, results.Once("OpenVINO to first result ms", MS(c.First)))
	}
	return append(list, results.Once("difference", r.Difference), results.Once("of", r.Largest), results.Once("others", r.Others))
}

// Times are the times of both sides and their ratio, turn by turn.
func Times(tenure, ort Side) []results.Named {
	return []results.Named{
		results.Samples("Tenure ms", 1e-6, tenure.turns),
		results.Samples("ONNX Runtime ms", 1e-6, ort.turns),
		results.Ratios("ratio", tenure.turns, ort.turns),
	}
}

// sum is the time of the calls that have something in common.
type sum struct {
	what  string
	nanos int64
	calls int
}

// WriteCalls prints where the time of a row went: by operator, and the types
// that took the most.
func (r Row) WriteCalls(out io.Writer) error {
	if len(r.Calls) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s, %d threads\n", r.name(), r.Threads)
	for _, part := range [][]sum{
		r.sums(func(c engine.Call) string { return c.Op }),
		r.sums(func(c engine.Call) string { return c.Op + "  " + c.Types }),
	} {
		for _, s := range part[:min(len(part), 15)] {
			fmt.Fprintf(t, "%.3f ms\t%.0f %%\t%d calls\t%s\n", MS(s.nanos), 100*Ratio(s.nanos, r.Tenure.Nanos), s.calls, s.what)
		}
	}
	return t.Flush()
}

// sums adds up the calls by a key, the largest sum first.
func (r Row) sums(key func(engine.Call) string) []sum {
	var list []sum
	at := map[string]int{}
	for _, c := range r.Calls {
		k := key(c)
		i, ok := at[k]
		if !ok {
			i, at[k] = len(list), len(list)
			list = append(list, sum{what: k})
		}
		list[i].nanos += c.Nanos
		list[i].calls++
	}
	slices.SortStableFunc(list, func(a, b sum) int { return cmp.Compare(b.nanos, a.nanos) })
	return list
}

// MS turns nanoseconds into milliseconds.
func MS(nanos int64) float64 { return float64(nanos) / 1e6 }

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// Ratio is a/b, and 0 where b is.
func Ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
