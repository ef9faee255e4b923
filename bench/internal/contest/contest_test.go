package contest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// The test binary plays both engines.
func TestMain(m *testing.M) {
	engine.ServeIfAsked()
	os.Exit(m.Run())
}

func options(t *testing.T) Options {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("resident sizes are read from /proc")
	}
	var o Options
	fs := flag.NewFlagSet("test", flag.PanicOnError)
	o.Flags(fs)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fs.Parse([]string{"-python", self, "-ort", "", "-turns", "3", "-ms", "1", "-peak", "1", "-calls"})
	return o
}

// wide is a model whose output is 8 MiB, from an input of as much and an
// index that picks nothing apart.
func wide() (*onnxfile.Graph, error) {
	g := onnxfile.New(13)
	g.Input("x", onnxfile.F32, 2<<20)
	g.Input("i", onnxfile.I64, 1)
	g.Weight("w", onnxfile.Uniform(1, 1), 2<<20)
	g.Node("Mul", []string{"x", "w"}, []string{"m"})
	g.Node("Exp", []string{"m"}, []string{"y"})
	g.Node("Gather", []string{"m", "i"}, []string{"g"})
	g.Output("y", onnxfile.F32)
	g.Output("g", onnxfile.F32)
	return g, nil
}

func TestContest(t *testing.T) {
	o := options(t)
	between := 0
	o.Between = func() { between++ }
	j, err := Prepare("wide", filepath.Join(t.TempDir(), "wide"), wide, nil)
	if err != nil {
		t.Fatal(err)
	}
	row, err := j.Run(1, o)
	if err != nil {
		t.Fatal(err)
	}
	if row.Difference != 0 || row.Largest < 1 || row.Largest > math.E {
		t.Errorf("got difference %v of %v, want 0 of a number between 1 and e", row.Difference, row.Largest)
	}
	if row.Model != "wide" || row.Threads != 1 || row.Weights != 8<<20 {
		t.Errorf("got row %+v, want wide with 1 thread and 8 MiB of weights", row)
	}
	if between != 3 {
		t.Errorf("Between: got %d calls, want one per turn", between)
	}
	for name, s := range map[string]Side{"Tenure": row.Tenure, "ORT": row.ORT} {
		if s.Nanos <= 0 || s.Runs < 3 {
			t.Errorf("%s: got %d ns of %d runs, want the time of some", name, s.Nanos, s.Runs)
		}
		// Weights and outputs are 16 MiB; the garbage of Go's side is less.
		if took := s.Took() >> 20; took < 14 || took > 40 {
			t.Errorf("%s: got a peak of %d MiB, want at least those of weights and outputs", name, took)
		}
		if grew := s.Grew() >> 20; grew < 7 || s.Grew() > s.Took() {
			t.Errorf("%s: got growth of %d MiB, want at least that of outputs, and no more than the peak", name, grew)
		}
	}
	if len(row.Calls) != 3 || row.Calls[0].Op != "mul" {
		t.Errorf("got calls %v, want three", row.Calls)
	}
}

func TestContestFaults(t *testing.T) {
	o := options(t)
	fault := errors.New("no model")
	if _, err := Prepare("x", t.TempDir(), func() (*onnxfile.Graph, error) { return nil, fault }, nil); !errors.Is(err, fault) {
		t.Errorf("got error %v, want the builder's", err)
	}
	odd := func() (*onnxfile.Graph, error) {
		g := onnxfile.New(13)
		g.Input("b", 9, 1)
		return g, nil
	}
	if _, err := Prepare("x", t.TempDir(), odd, nil); err == nil || !strings.Contains(err.Error(), "got element type 9, want float32 or int64") {
		t.Errorf("got error %v, want one about the element type", err)
	}
	j, err := Prepare("wide", t.TempDir(), wide, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Python = filepath.Join(t.TempDir(), "python")
	if _, err := j.Run(1, o); err == nil || !strings.Contains(err.Error(), "ort.py install") {
		t.Errorf("got error %v, want one that says how to install it", err)
	}
}

func TestApart(t *testing.T) {
	raw := func(list ...float32) (b []byte) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x, y                []byte
		difference, largest float64
	}{
		{raw(1, 2, 3), raw(1, 2.5, -4), 7, 4},
		{raw(1, inf, nan), raw(1, inf, nan), 0, math.Inf(1)},
		{raw(nan), raw(5), math.Inf(1), 5},
		{raw(5), raw(nan), math.Inf(1), 0},
		{raw(1), raw(inf), math.Inf(1), math.Inf(1)},
		{raw(), raw(), 0, 0},
	} {
		d, l, err := apart("f32", c.x, c.y)
		if err != nil || d != c.difference || l != c.largest {
			t.Errorf("apart(%x, %x): got %v of %v, %v, want %v of %v", c.x, c.y, d, l, err, c.difference, c.largest)
		}
	}
	if _, _, err := apart("f32", raw(1), raw(1, 2)); err == nil || !strings.Contains(err.Error(), "got 4 bytes from Tenure and 8 from ONNX Runtime") {
		t.Errorf("got error %v, want one with both sizes", err)
	}
	if d, l, err := apart("i64", []byte{7, 0, 0, 0, 0, 0, 0, 0}, []byte{254, 255, 255, 255, 255, 255, 255, 255}); d != 9 || l != 2 || err != nil {
		t.Errorf("i64: got %v of %v, %v, want 9 of 2", d, l, err)
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i, data := range [][]byte{{1, 2}, {1, 5}} {
		files = append(files, filepath.Join(dir, strconv.Itoa(i)))
		if err := os.WriteFile(files[i], data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	of := func(file, typ string) engine.Reply { return engine.Reply{Files: []string{file}, Types: []string{typ}} }
	if d, l, err := Compare(of(files[0], "u8"), of(files[1], "u8")); d != 3 || l != 5 || err != nil {
		t.Errorf("got %v of %v, %v, want 3 of 5", d, l, err)
	}
	for want, replies := range map[string][2]engine.Reply{
		"got 1 and 0 outputs":                         {of(files[0], "u8"), {}},
		"got 0 and 1 types of 1 outputs":              {{Files: files[:1]}, of(files[1], "u8")},
		"got u8 from Tenure and i8 from ONNX Runtime": {of(files[0], "u8"), of(files[1], "i8")},
		`got type "float8", want one whose elements`:  {of(files[0], "float8"), of(files[1], "float8")},
		"no such file":                                {of(files[0]+"x", "u8"), of(files[1], "u8")},
	} {
		if _, _, err := Compare(replies[0], replies[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// The better opponent is the faster one, but for an instruction set to which
// only OpenVINO can be limited.
func TestBetter(t *testing.T) {
	ort, ov := Side{Nanos: 10, turns: []int64{10}}, Side{About: "OpenVINO 2.0, f32", Nanos: 20, turns: []int64{20}}
	row := Row{Tenure: Side{Nanos: 5, turns: []int64{5}}, ORT: ort}
	if got := row.Better().Nanos; got != 10 {
		t.Errorf("without OpenVINO: got %d, want ONNX Runtime's 10", got)
	}
	row.OpenVINO = ov
	if got := row.Better().Nanos; got != 10 {
		t.Errorf("slower OpenVINO: got %d, want ONNX Runtime's 10", got)
	}
	row.CPU = "avx2"
	if got := row.Better().Nanos; got != 20 {
		t.Errorf("limited: got %d, want OpenVINO's 20", got)
	}
	r := Result("models", []Row{row})
	if got := r.Rows[0].Figures["to the better"].Median; got != 0.25 || r.Versions["OpenVINO"] != "2.0" {
		t.Errorf("got ratio %v to OpenVINO %q, want 0.25 to 2.0", got, r.Versions["OpenVINO"])
	}
	row.OpenVINO, row.Without = Side{}, errors.New("OpenVINO: load: no operator\nmore")
	if got := row.Progress(); !strings.HasSuffix(got, "(without OpenVINO: load: no operator)") {
		t.Errorf("got %q, want the first line of the reason", got)
	}
}

// A model of a folder plays like a built one; an opponent that fails to load it
// is left out if it is OpenVINO.
func TestOpen(t *testing.T) {
	o := options(t)
	o.OV = "missing"
	built, err := Prepare("wide", filepath.Join(t.TempDir(), "wide"), wide, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(built.file)
	if _, err := Open("wide", folder, filepath.Join(t.TempDir(), "out")); err == nil || !strings.Contains(err.Error(), "inputs.json") {
		t.Errorf("got error %v, want one about inputs.json", err)
	}
	text := `[{"name":"x","type":"f32","dims":[2097152],"file":"input0"},{"name":"i","type":"i64","dims":[1],"file":"input1"}]`
	if err := os.WriteFile(filepath.Join(folder, "inputs.json"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	j, err := Open("wide", folder, filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	row, err := j.Run(1, o)
	if err != nil {
		t.Fatal(err)
	}
	if row.Difference != 0 || row.Weights < 8<<20 || row.Tenure.First <= row.Tenure.Load || row.OpenVINO.Nanos <= 0 {
		t.Errorf("got %+v, want equal outputs, the file's size, a first run and a third player", row)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		list []int64
		want int64
	}{{[]int64{7}, 7}, {[]int64{9, 1, 5}, 5}, {[]int64{4, 3, 2, 1}, 3}} {
		if got := Median(c.list); got != c.want {
			t.Errorf("Median(%v): got %d, want %d", c.list, got, c.want)
		}
	}
}

func rows() []Row {
	const mib = 1 << 20
	return []Row{
		{Model: "small", Threads: 1, Difference: 1e-6, Largest: 12.5, Others: 0.25,
			Tenure: Side{About: "Tenure, arena planned", Nanos: 1_500_000, Load: 7_000_000, Runs: 10, Base: 10 * mib, Idle: 12 * mib, Peak: 14 * mib,
				turns: []int64{1_400_000, 1_500_000, 1_600_000}},
			ORT: Side{About: "ONNX Runtime 1.2.3, inter-op threads 1", Nanos: 1_000_000, Load: 30_000_000, Runs: 10, Base: 60 * mib, Idle: 63 * mib, Peak: 68 * mib,
				turns: []int64{1_000_000, 750_000, 1_000_000}},
			Calls: []engine.Call{
				{Op: "add", Types: "f32[2] -> f32[2]", Nanos: 100_000},
				{Op: "conv", Types: "f32[1,2,3] -> f32[1]", Nanos: 700_000},
				{Op: "add", Types: "f32[2] -> f32[2]", Nanos: 200_000},
			}},
		{Model: "large", Held: "compressed", Threads: 2, Tenure: Side{Nanos: 2_000_000}, ORT: Side{}},
	}
}

func TestResult(t *testing.T) {
	r := Result("models", rows())
	if r.Versions["ONNX Runtime"] != "1.2.3" || len(r.Rows) != 2 {
		t.Fatalf("got %+v, want two rows against version 1.2.3", r)
	}
	small, ok := r.Find("small", "mapped", "1")
	if !ok {
		t.Fatalf("got rows %+v, want one of small", r.Rows)
	}
	for name, want := range map[string]float64{
		"Tenure ms": 1.5, "ONNX Runtime ms": 1, "ratio": 1.6, "Tenure peak MiB": 4, "ONNX Runtime peak MiB": 8, "peak ratio": 0.5,
		"Tenure growth MiB": 2, "ONNX Runtime growth MiB": 5, "Tenure load ms": 7, "ONNX Runtime load ms": 30,
		"difference": 1e-6, "of": 12.5, "others": 0.25,
	} {
		if got := small.Figures[name].Median; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := small.Figures["ratio"].Pairs; got != 3 {
		t.Errorf("ratio: got %d pairs, want the three turns", got)
	}
	if _, ok := r.Find("large", "compressed", "2"); !ok {
		t.Errorf("got rows %+v, want one of large with compressed weights", r.Rows)
	}
}

func TestCalls(t *testing.T) {
	var b bytes.Buffer
	for _, row := range rows() {
		if err := row.WriteCalls(&b); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if got, want := rows()[0].Progress(), "small, 1 threads: 1.500 ms, 1.000 ms, ratio 1.50"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOthers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("busy times are read from /proc")
	}
	m := busy()
	if m.ticks <= 0 {
		t.Fatalf("got %d ticks, want some", m.ticks)
	}
	// Ours are subtracted: a process that was busy for longer than everybody
	// since the moment leaves nothing.
	if ticksOf(os.Getpid()) < 0 || ticksOf(-1) != 0 {
		t.Error("got ticks of no process, want 0")
	}
	m.ticks -= 1000 // as if ten seconds had been used
	m.when = m.when.Add(-10 * time.Second)
	if got := m.others(); got < 0.9 || got > float64(runtime.NumCPU()) {
		t.Errorf("got %.2f busy processors, want at least one", got)
	}
}
