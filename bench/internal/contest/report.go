package contest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/bench/internal/engine"
)

// Side is what one engine showed. Sizes are bytes that were resident in the
// engine's process.
type Side struct {
	About  string `json:"about"`
	Nanos  int64  `json:"nanos"`  // median over the turns of each turn's median
	Runs   int    `json:"runs"`   // timed runs
	Base   int64  `json:"base"`   // libraries and inputs are loaded, the model is not
	Loaded int64  `json:"loaded"` // the model is loaded
	Load   int64  `json:"load"`   // nanoseconds that loading took
	Idle   int64  `json:"idle"`   // just before the first run
	Peak   int64  `json:"peak"`   // the high-water mark of the first runs
	turns  []int64
}

// Took is the peak of the first runs above the process without its model:
// weights, workspace and outputs.
func (s Side) Took() int64 { return s.Peak - s.Base }

// Grew is the peak of the first runs above the process with its model loaded.
func (s Side) Grew() int64 { return s.Peak - s.Idle }

// Row is one model with one number of threads.
type Row struct {
	Model   string `json:"model"`
	Held    string `json:"held,omitempty"` // how Tenure held the weights
	Threads int    `json:"threads"`
	CPU     string `json:"cpu,omitempty"` // what Tenure's instruction set was limited to
	Tenure  Side   `json:"tenure"`
	ORT     Side   `json:"ort"`
	Weights int64  `json:"weights"` // in the file
	// The largest difference of the outputs, the input of a last Softmax among
	// them, and the largest number in the output where it is.
	Difference float64 `json:"difference"`
	Largest    float64 `json:"largest"`
	Others     float64 `json:"others"` // processors that other processes kept busy

	Calls []engine.Call `json:"calls,omitempty"` // of Tenure's program, with -calls
}

// Report is the result of a benchmark.
type Report struct {
	Machine string    `json:"machine"`
	When    time.Time `json:"when"`
	Rows    []Row     `json:"rows"`
}

// NewReport begins a report of this machine.
func NewReport() *Report {
	return &Report{Machine: Machine(), When: time.Now().UTC().Truncate(time.Second)}
}

// Machine describes this machine.
func Machine() string {
	model := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(data), "model name\t: "); ok {
			model, _, _ = strings.Cut(rest, "\n")
		}
		for _, set := range []string{"avx2", "avx512f"} {
			if strings.Contains(string(data), " "+set+" ") {
				model += " " + strings.TrimSuffix(set, "f")
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s/%s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// name is the model, and what is unusual about its row.
func (r Row) name() string {
	if r.Held == "compressed" {
		return r.Model + ", compressed"
	}
	return r.Model
}

// Progress is a row in few words.
func (r Row) Progress() string {
	return fmt.Sprintf("%s, %d threads: %.3f ms, %.3f ms, ratio %.2f", r.name(), r.Threads, MS(r.Tenure.Nanos), MS(r.ORT.Nanos), Ratio(r.Tenure.Nanos, r.ORT.Nanos))
}

// WriteTable prints the report as a table.
func (r *Report) WriteTable(out io.Writer) error {
	if len(r.Rows) == 0 {
		return fmt.Errorf("got no rows, want some")
	}
	fmt.Fprintf(out, "%s, %s\n%s; %s\n\n", r.Machine, r.When.Format(time.RFC3339), r.Rows[0].Tenure.About, r.Rows[0].ORT.About)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "model\tthreads\tTenure ms\tORT ms\tratio\tpeak MiB\tORT\tratio\tgrowth\tORT\tload ms\tORT\tdifference\tof\tothers\t")
	for _, row := range r.Rows {
		a, b := row.Tenure, row.ORT
		fmt.Fprintf(t, "%s\t%d\t%.3f\t%.3f\t%.2f\t%.1f\t%.1f\t%.2f\t%.1f\t%.1f\t%.0f\t%.0f\t%.1e\t%.3g\t%.1f\t\n",
			row.name(), row.Threads, MS(a.Nanos), MS(b.Nanos), Ratio(a.Nanos, b.Nanos),
			mib(a.Took()), mib(b.Took()), Ratio(a.Took(), b.Took()), mib(a.Grew()), mib(b.Grew()), MS(a.Load), MS(b.Load),
			row.Difference, row.Largest, row.Others)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if err := row.writeCalls(out); err != nil {
			return err
		}
	}
	return nil
}

// sum is the time of the calls that have something in common.
type sum struct {
	what  string
	nanos int64
	calls int
}

// writeCalls prints where the time of a row went: by operator, and the types
// that took the most.
func (r Row) writeCalls(out io.Writer) error {
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

// WriteJSON prints the report as JSON.
func (r *Report) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Read adds the rows of a stored report. The machine and the time are those
// of the first one.
func (r *Report) Read(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var other Report
	if err := json.Unmarshal(data, &other); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if r.Machine == "" {
		r.Machine, r.When = other.Machine, other.When
	}
	if other.Machine != r.Machine {
		return fmt.Errorf("%s: got results of %q, want of %q", file, other.Machine, r.Machine)
	}
	r.Rows = append(r.Rows, other.Rows...)
	return nil
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
