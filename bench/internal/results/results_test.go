package results

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sample() *Result {
	r := New("rows", map[string]string{"ONNX Runtime": "1.2.3"}, "operator", "threads")
	r.Machine, r.Processors, r.Date, r.Command = "test machine", 2, "2026-01-02", "go run ./rows -ms 60"
	r.Versions["Go"], r.Versions["Tenure"] = "1.26.8", "abc1234"
	r.Add([]string{"relu", "1"}, Samples("Tenure ms", 1e-6, []int64{2e6, 1e6, 3e6, 2e6, 2e6, 2e6}), Ratios("ratio", []int64{1, 4}, []int64{2, 4}))
	r.Add([]string{"a < b & c", "2"}, Once("Tenure ms", 0.5), Once("others", int64(3)))
	return r
}

func TestWritten(t *testing.T) {
	fs := flag.NewFlagSet("rows", flag.ContinueOnError)
	var o Output
	o.Flags(fs)
	file := filepath.Join(t.TempDir(), "rows.json")
	if err := fs.Parse([]string{"-json", "-results", file}); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := o.Write(&printed, sample(), nil); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "benchmark": "rows",
  "machine": "test machine",
  "processors": 2,
  "date": "2026-01-02",
  "versions": {
    "Go": "1.26.8",
    "ONNX Runtime": "1.2.3",
    "Tenure": "abc1234"
  },
  "command": "go run ./rows -ms 60",
  "case": [
    "operator",
    "threads"
  ],
  "figures": [
    "Tenure ms",
    "ratio",
    "others"
  ],
  "rows": [
    {"case":["relu","1"],"figures":{"Tenure ms":{"median":2,"interval":[1,3],"pairs":6},"ratio":{"median":0.75,"pairs":2}}},
    {"case":["a < b & c","2"],"figures":{"Tenure ms":{"median":0.5},"others":{"median":3}}}
  ]
}
`
	if printed.String() != want || string(written) != want {
		t.Errorf("got\n%s\nand\n%s\nwant\n%s", printed.String(), written, want)
	}
	r, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	row, ok := r.Find("relu", "1")
	if f := row.Figures["Tenure ms"]; !ok || f.Median != 2 || *f.Interval != [2]float64{1, 3} || f.Pairs != 6 {
		t.Errorf("got %+v, want what was written", row)
	}
	if _, ok := r.Find("relu", "2"); ok {
		t.Error("got a row that was not written")
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := new(Output).Write(&b, sample(), nil); err != nil {
		t.Fatal(err)
	}
	const want = `2026-01-02; test machine, 2 processors; Go 1.26.8, ONNX Runtime 1.2.3, Tenure abc1234
go run ./rows -ms 60

   operator  threads            Tenure ms  ratio  others
       relu        1  2.00 (1.00 to 3.00)  0.750       -
  a < b & c        2                0.500      -    3.00
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := sample().WriteText(&b, func(r Row) bool { return r.Case[1] == "2" }); err != nil || strings.Contains(b.String(), "relu") || !strings.Contains(b.String(), "a < b") {
		t.Errorf("got\n%s(error %v), want the second row alone", b.String(), err)
	}
	for v, want := range map[float64]string{0: "0", 1234.5: "1234", 123.4: "123", -12.34: "-12.3", 1.234: "1.23", 0.1234: "0.123", 0.00123: "0.00123", 1e-7: "1.0e-07"} {
		if got := number(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestJoin(t *testing.T) {
	one, other := sample(), sample()
	if err := one.Join(other); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the same rows: got error %v, want one", err)
	}
	one, other = sample(), sample()
	other.Rows, other.Date = nil, "2026-01-03"
	other.Add([]string{"relu", "2"}, Once("new", 1.0))
	if err := one.Join(other); err != nil || len(one.Rows) != 3 || one.Date != "2026-01-03" || !slices.Contains(one.Figures, "new") {
		t.Errorf("got %+v, error %v, want three rows, the later day and the new figure", one, err)
	}
	other.Machine = "another"
	if err := sample().Join(other); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("another machine: got error %v, want one that names it", err)
	}
}

// Every way in which a file can be less than a result is an error.
func TestReadFaults(t *testing.T) {
	for name, spoil := range map[string]func(r *Result){
		"machine":              func(r *Result) { r.Machine = "" },
		"processors":           func(r *Result) { r.Processors = 0 },
		"date":                 func(r *Result) { r.Date = "today" },
		"command":              func(r *Result) { r.Command = "" },
		"version of Go":        func(r *Result) { delete(r.Versions, "Go") },
		"commit":               func(r *Result) { delete(r.Versions, "Tenure") },
		"rows":                 func(r *Result) { r.Rows = nil },
		"words of a case":      func(r *Result) { r.Rows[0].Case = []string{"relu"} },
		"unnamed figure":       func(r *Result) { r.Rows[1].Figures["other"] = Figure{} },
		"a case that is twice": func(r *Result) { r.Rows[1].Case = r.Rows[0].Case },
	} {
		r := sample()
		spoil(r)
		file := filepath.Join(t.TempDir(), "r.json")
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file: got no error, want one")
	}
}

// The ranks are those of printed tables of the sign test.
func TestRank(t *testing.T) {
	for n, want := range map[int]int{6: 0, 7: 0, 8: 0, 9: 1, 11: 1, 12: 2, 15: 3, 20: 5, 25: 7} {
		if got, ok := Rank(n); got != want || !ok {
			t.Errorf("%d pairs: got %d values left out (%v), want %d", n, got, ok, want)
		}
	}
	for n := range 6 {
		if _, ok := Rank(n); ok {
			t.Errorf("%d pairs: got an interval, want none", n)
		}
	}
	exact, _ := Rank(manySamples)
	if approximate, _ := Rank(manySamples + 1); approximate > exact || approximate < exact-2 {
		t.Errorf("got %d values left out of %d and %d of one more, want nearly the same", exact, manySamples, approximate)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{3, 1, 2}).Median; got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := median([]float64{4, 1, 2, 3}).Median; got != 2.5 {
		t.Errorf("got %v, want 2.5", got)
	}
	if got := Spread("x", []float64{3, 1, 2, 9}).Figure; got.Median != 3 || *got.Interval != [2]float64{1, 9} {
		t.Errorf("got %+v, want all that there is in the interval", got)
	}
}

// A result has the command line that repeats it, without this machine's
// folders.
func TestSaid(t *testing.T) {
	abs := func(s string) string { a, _ := filepath.Abs(s); return a }
	got := said([]string{"-models", "mlp", "-python", abs("python"), "-json", "-results", "x.json", "-results=y.json", "-turns=3", "../digits.onnx", abs("m.onnx")})
	if want := []string{"-models", "mlp", "-turns=3", "../digits.onnx"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r := New("rows", map[string]string{"numpy": ""}, "operator")
	if names := slices.Sorted(maps.Keys(r.Versions)); !slices.Equal(names, []string{"Go", "Tenure"}) || r.Processors < 1 || r.Machine == "" {
		t.Errorf("got %+v, want this machine, Go and Tenure", r)
	}
}

func TestProcessor(t *testing.T) {
	text := func(vendor, family, model, flags string) string {
		return "processor\t: 0\nvendor_id\t: " + vendor + "\ncpu family\t: " + family + "\nmodel\t\t: " + model + "\nmodel name\t: Name\nflags\t\t: " + flags + "\n"
	}
	for want, in := range map[string]string{
		"Name (Zen 4), AVX-512": text("AuthenticAMD", "25", "17", "sse avx2 avx512f bmi1"),
		"Name (Zen 5), AVX-512": text("AuthenticAMD", "26", "2", "avx512f avx2"),
		"Name, AVX2":            text("GenuineIntel", "6", "17", "avx2 fma"),
		"Name":                  text("AuthenticAMD", "25", "1", "sse"),
		"":                      "",
	} {
		if got := processor(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
