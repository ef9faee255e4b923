// Package results is the form in which the benchmarks write their measurements.
//
// A [Result] is one run of one command: the command, the machine, the versions,
// and a row of figures for each case. Commands print it as a table or as JSON,
// and write it to a file, depending on their flags ([Output]). The tables of
// README.md are rendered from such files by the command tables.
//
//	r := results.New("rows", map[string]string{"ONNX Runtime": "1.32.0"}, "operator", "threads")
//	r.Add([]string{"relu", "1"}, results.Samples("Tenure ms", ours), results.Ratios("ratio", ours, theirs))
//
// A result holds Go memory only and belongs to one goroutine.
package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result is what one run of a benchmark measured.
type Result struct {
	Benchmark  string            `json:"benchmark"`
	Machine    string            `json:"machine"`
	Processors int               `json:"processors"`
	Date       string            `json:"date"`     // the day, as in 2026-11-22
	Versions   map[string]string `json:"versions"` // of Go, of Tenure (a commit), of the libraries that it was compared with
	Command    string            `json:"command"`  // as typed in the folder bench
	Note       string            `json:"note,omitempty"`
	Case       []string          `json:"case"`    // the parts of a row's case
	Figures    []string          `json:"figures"` // the names of figures, in the order of a table's columns
	Rows       []Row             `json:"rows"`
}

// Row is one case. A figure that does not apply to it is absent.
type Row struct {
	Case    []string          `json:"case"`
	Figures map[string]Figure `json:"figures"`
}

// Figure is the median of samples. Names of figures end with the unit, if there
// is one.
type Figure struct {
	Median   float64     `json:"median"`
	Interval *[2]float64 `json:"interval,omitempty"` // holds the true median in at least 95 of 100 runs; absent where samples are too few
	Pairs    int         `json:"pairs,omitempty"`    // samples: turns of both sides; absent where something was measured once
}

// Named is a figure with its name.
type Named struct {
	Name string
	Figure
}

// New begins a result of this machine, of today, and of the command that this
// process is. The versions of Go and Tenure are added to the given ones. The
// words name the parts of a row's case.
func New(benchmark string, versions map[string]string, words ...string) *Result {
	r := &Result{Benchmark: benchmark, Machine: Machine(), Processors: runtime.NumCPU(), Date: time.Now().UTC().Format(time.DateOnly),
		Versions: map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go"), "Tenure": commit()}, Case: words}
	for name, version := range versions {
		if version != "" {
			r.Versions[name] = version
		}
	}
	r.Command = strings.Join(append([]string{"go run ./" + benchmark}, said(os.Args[1:])...), " ")
	return r
}

// said returns the arguments that whoever repeats a command needs: not where
// results go, and no paths of this machine.
func said(args []string) (kept []string) {
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimPrefix(args[i], "-"), "=")
		switch {
		case name == "-json" || name == "json":
		case name == "-results" || name == "results":
			if !joined {
				i++
			}
		case filepath.IsAbs(args[i]):
			if n := len(kept); n > 0 && strings.HasPrefix(kept[n-1], "-") {
				kept = kept[:n-1]
			}
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}

// commit describes the sources by git.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty=, changed", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// Machine describes the processor and the system.
func Machine() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	return strings.TrimPrefix(processor(string(data))+", "+runtime.GOOS+"/"+runtime.GOARCH, ", ")
}

// processor says which one Linux describes: virtual machines often hide the
// name, but not the generation.
func processor(text string) string {
	field := func(name string) string {
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	about := field("model name")
	family, _ := strconv.Atoi(field("cpu family"))
	model, _ := strconv.Atoi(field("model"))
	if field("vendor_id") == "AuthenticAMD" {
		switch {
		case family == 26:
			about += " (Zen 5)"
		case family == 25 && (model >= 0x10 && model < 0x20 || model >= 0x60 && model < 0x80 || model >= 0xa0 && model < 0xb0):
			about += " (Zen 4)"
		}
	}
	sets := " " + field("flags") + " "
	for _, set := range [][2]string{{"avx512f", "AVX-512"}, {"avx2", "AVX2"}} {
		if strings.Contains(sets, " "+set[0]+" ") {
			return about + ", " + set[1]
		}
	}
	return about
}

// Add adds a row.
func (r *Result) Add(words []string, figures ...Named) {
	row := Row{Case: words, Figures: map[string]Figure{}}
	for _, f := range figures {
		row.Figures[f.Name] = f.Figure
		if !slices.Contains(r.Figures, f.Name) {
			r.Figures = append(r.Figures, f.Name)
		}
	}
	r.Rows = append(r.Rows, row)
}

// Find returns the row of a case.
func (r *Result) Find(words ...string) (Row, bool) {
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return slices.Equal(row.Case, words) })
	if i < 0 {
		return Row{}, false
	}
	return r.Rows[i], true
}

// Join adds the rows of another run of the same benchmark on the same machine,
// with the same versions.
func (r *Result) Join(other *Result) error {
	if other.Benchmark != r.Benchmark || other.Machine != r.Machine || !maps.Equal(other.Versions, r.Versions) || !slices.Equal(other.Case, r.Case) {
		return fmt.Errorf("got results of %s (%s), want of %s (%s)", other.Benchmark, other.Origin(), r.Benchmark, r.Origin())
	}
	r.Date = max(r.Date, other.Date)
	for _, name := range other.Figures {
		if !slices.Contains(r.Figures, name) {
			r.Figures = append(r.Figures, name)
		}
	}
	r.Rows = append(r.Rows, other.Rows...)
	return r.check()
}

// Read reads a file that Output wrote, and checks that it is whole: an origin,
// and for each row the words and figures that the result names.
func Read(file string) (*Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func (r *Result) check() error {
	for what, missing := range map[string]bool{
		"benchmark": r.Benchmark == "", "machine": r.Machine == "", "processors": r.Processors < 1, "command": r.Command == "",
		"version of Go": r.Versions["Go"] == "", "commit of Tenure": r.Versions["Tenure"] == "", "rows": len(r.Rows) == 0,
	} {
		if missing {
			return fmt.Errorf("got no %s, want one", what)
		}
	}
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
		return err
	}
	for i, row := range r.Rows {
		if len(row.Case) != len(r.Case) {
			return fmt.Errorf("row %d: got case %q, want %d words", i, row.Case, len(r.Case))
		}
		for name := range row.Figures {
			if !slices.Contains(r.Figures, name) {
				return fmt.Errorf("row %d: got figure %q, want one of %q", i, name, r.Figures)
			}
		}
		for _, other := range r.Rows[:i] {
			if slices.Equal(other.Case, row.Case) {
				return fmt.Errorf("row %d: got case %q twice", i, row.Case)
			}
		}
	}
	return nil
}

// WriteJSON writes the result as JSON, a line for each row.
func (r *Result) WriteJSON(w io.Writer) error {
	head := *r
	head.Rows = nil
	text, err := marshal(head, "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(text, "null\n}") + "[")
	for i, row := range r.Rows {
		line, err := marshal(row, "")
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    " + line)
	}
	b.WriteString("\n  ]\n}\n")
	_, err = io.WriteString(w, b.String())
	return err
}

// marshal is json.Marshal without its escapes for HTML.
func marshal(v any, indent string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// others are the names of versions beside Go and Tenure, sorted.
func others(versions map[string]string) (names []string) {
	for name := range versions {
		if name != "Go" && name != "Tenure" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
