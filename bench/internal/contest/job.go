package contest

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// Options say how a contest is run.
type Options struct {
	Python string // an interpreter that has onnxruntime
	Script string // ort.py
	CPU    string // the highest instruction set that Tenure may use: TENURE_CPU
	Arena  bool   // ONNX Runtime's memory arena, and one for Tenure's outputs
	Into   bool   // outputs go into the same bytes on every run, instead of new ones

	Weights string // how Tenure holds weights: "mapped" or "compressed"
	Turns   int    // turns of each engine
	Millis  int    // length of a turn
	Peak    int    // runs whose peak is taken
	Calls   bool   // how long each of Tenure's calls took, too

	Between func() // runs in every turn, after both engines; may be nil
}

// Flags makes flags for the options.
func (o *Options) Flags(fs *flag.FlagSet) {
	fs.StringVar(&o.Python, "python", filepath.Join(DefaultVenv(), "bin", "python"), "interpreter with onnxruntime: see ort.py install")
	fs.StringVar(&o.Script, "ort", "ort.py", "ONNX Runtime's side of the contest")
	fs.StringVar(&o.CPU, "cpu", os.Getenv("TENURE_CPU"), "highest instruction set for Tenure: portable, avx2, avx512; what the machine has when empty")
	fs.BoolVar(&o.Arena, "arena", true, "ONNX Runtime's memory arena, and an arena for Tenure's outputs")
	fs.BoolVar(&o.Into, "into", o.Into, "outputs go into the same bytes on every run")
	fs.IntVar(&o.Turns, "turns", 8, "turns of each engine")
	fs.IntVar(&o.Millis, "ms", 60, "length of a turn in milliseconds: one run at least")
	fs.BoolVar(&o.Calls, "calls", false, "say where Tenure's time goes, too")
	fs.IntVar(&o.Peak, "peak", 3, "runs whose peak memory is taken")
}

// DefaultVenv is where ort.py installs ONNX Runtime.
func DefaultVenv() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "tenure-bench"
	}
	return filepath.Join(cache, "tenure-bench")
}

// rest is the pause between turns: the workers of both engines look for more
// work for a while before they sleep, and must not do so in the other's turn.
const rest = 15 * time.Millisecond

// Job is a model that is ready to run.
type Job struct {
	name    string
	dir     string
	file    string
	inputs  []engine.Input
	outputs []string
	weights int64
}

// Prepare writes a model's file and its inputs into a folder, which it makes.
// becomes names the outputs that inputs become from run to run.
func Prepare(name, dir string, build func() (*onnxfile.Graph, error), becomes map[string]string) (*Job, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	g, err := build()
	if err != nil {
		return nil, err
	}
	j := &Job{name: name, dir: dir, file: filepath.Join(dir, "model.onnx"), outputs: g.Outputs(), weights: g.WeightBytes()}
	file, err := os.Create(j.file)
	if err != nil {
		return nil, err
	}
	if _, err := g.WriteTo(file); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	for i, in := range g.Inputs() {
		e := engine.Input{Name: in.Name, Dims: in.Dims, File: filepath.Join(dir, fmt.Sprint("input", i)), Becomes: becomes[in.Name]}
		var data []byte
		if e.Type, data, err = fill(in); err != nil {
			return nil, err
		}
		if err := os.WriteFile(e.File, data, 0o666); err != nil {
			return nil, err
		}
		j.inputs = append(j.inputs, e)
	}
	return j, nil
}

// File is the model's file.
func (j *Job) File() string { return j.file }

// fill draws an input: floats in [-1, 1), whole numbers that are small enough
// to be indices.
func fill(in onnxfile.Input) (typ string, data []byte, err error) {
	n := 1
	for _, d := range in.Dims {
		n *= d
	}
	switch in.Elem {
	case onnxfile.F32:
		values := make([]float32, n)
		onnxfile.Uniform(onnxfile.Seed(in.Name), 1)()(values)
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		return "f32", data, nil
	case onnxfile.I64:
		for i := range n {
			data = binary.LittleEndian.AppendUint64(data, uint64(7+i))
		}
		return "i64", data, nil
	}
	return "", nil, fmt.Errorf("input %s: got element type %d, want float32 or int64", in.Name, in.Elem)
}

// Run lets Tenure and ONNX Runtime run the model with a number of threads.
func (j *Job) Run(threads int, o Options) (Row, error) {
	row := Row{Model: j.name, Held: o.Weights, Threads: threads, CPU: o.CPU, Weights: j.weights}
	before := busy()
	tenure, err := o.Start("Tenure")
	if err != nil {
		return row, err
	}
	defer tenure.Close()
	ort, err := o.Start("ONNX Runtime")
	if err != nil {
		return row, err
	}
	defer ort.Close()
	a, b := Player{tenure, &row.Tenure}, Player{ort, &row.ORT}
	ours, err := j.load(a, threads, o)
	if err != nil {
		return row, err
	}
	theirs, err := j.load(b, threads, o)
	if err != nil {
		return row, err
	}
	if row.Difference, row.Largest, err = Compare(ours, theirs); err != nil {
		return row, err
	}
	if err := Alternate(o, a, b); err != nil {
		return row, err
	}
	if o.Calls {
		r, err := tenure.Ask(engine.Request{Do: "profile", Runs: 9})
		if err != nil {
			return row, err
		}
		row.Calls = r.Calls
	}
	row.Others = before.others(tenure.PID(), ort.PID(), os.Getpid())
	return row, nil
}

// Start starts the process of "Tenure" or of "ONNX Runtime".
func (o Options) Start(name string) (*engine.Process, error) {
	if name == "Tenure" {
		return engine.StartTenure("TENURE_CPU=" + o.CPU)
	}
	p, err := engine.Start(name, []string{o.Python, o.Script, engine.ServeArg}, nil)
	if err != nil {
		return nil, fmt.Errorf("%w (python3 ort.py install installs it)", err)
	}
	return p, nil
}

// Player is an engine with a model loaded, and its measurements.
type Player struct {
	*engine.Process
	Side *Side
}

// Alternate lets players run in turn and sets their times. Who begins a round
// changes, so that nobody is always behind another.
func Alternate(o Options, players ...Player) error {
	for turn := range o.Turns {
		for i := range players {
			p := players[(turn+i)%len(players)]
			time.Sleep(rest)
			r, err := p.Ask(engine.Request{Do: "run", Milliseconds: o.Millis, Runs: 1000})
			if err != nil {
				return err
			}
			p.Side.turns = append(p.Side.turns, Median(r.Nanos))
			p.Side.Runs += len(r.Nanos)
		}
		if o.Between != nil {
			time.Sleep(rest)
			o.Between()
		}
	}
	for _, p := range players {
		p.Side.Nanos = Median(p.Side.turns)
	}
	return nil
}

// load loads the model, takes the peak of its first runs, and returns the
// files of its outputs.
func (j *Job) load(p Player, threads int, o Options) ([]string, error) {
	if err := j.Load(p, threads, o); err != nil {
		return nil, err
	}
	r, err := p.Ask(engine.Request{Do: "peak", Runs: o.Peak})
	if err != nil {
		return nil, err
	}
	p.Side.Idle, p.Side.Peak = r.Before, r.After
	dir, err := os.MkdirTemp(j.dir, "out")
	if err != nil {
		return nil, err
	}
	r, err = p.Ask(engine.Request{Do: "outputs", Dir: dir})
	return r.Files, err
}

// Load loads the model into a player.
func (j *Job) Load(p Player, threads int, o Options) error {
	r, err := p.Ask(engine.Request{Do: "load", Model: j.file, Threads: threads, Inputs: j.inputs, Outputs: j.outputs, Arena: o.Arena, Into: o.Into, Weights: o.Weights})
	p.Side.About, p.Side.Base, p.Side.Loaded = r.About, r.Before, r.After
	if len(r.Nanos) > 0 {
		p.Side.Load = r.Nanos[0]
	}
	return err
}

// Compare returns the largest difference of two engines' float outputs, and
// the largest number among those of the output where it is.
func Compare(a, b []string) (difference, largest float64, err error) {
	if len(a) != len(b) || len(a) == 0 {
		return 0, 0, fmt.Errorf("got %d and %d outputs, want as many of both", len(a), len(b))
	}
	for i := range a {
		x, err := os.ReadFile(a[i])
		if err != nil {
			return 0, 0, err
		}
		y, err := os.ReadFile(b[i])
		if err != nil {
			return 0, 0, err
		}
		d, l, err := apart(x, y)
		if err != nil {
			return 0, 0, fmt.Errorf("output %d: %w", i, err)
		}
		if d > difference || i == 0 {
			difference, largest = d, l
		}
	}
	return difference, largest, nil
}

func apart(x, y []byte) (difference, largest float64, err error) {
	if len(x) != len(y) {
		return 0, 0, fmt.Errorf("got %d bytes from Tenure and %d from ONNX Runtime, want as many", len(x), len(y))
	}
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(x)))
		w := float64(math.Float32frombits(binary.LittleEndian.Uint32(y)))
		d := math.Abs(v - w)
		switch {
		case v == w || math.IsNaN(v) && math.IsNaN(w):
			d = 0 // of equal infinities too
		case math.IsNaN(d):
			d = math.Inf(1)
		}
		difference = max(difference, d)
		if a := math.Abs(w); a > largest {
			largest = a
		}
	}
	return difference, largest, nil
}

// Threads reads numbers of threads that commas separate.
func Threads(words string) (counts []int, err error) {
	for _, word := range strings.Split(words, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-threads: got %q, want numbers from 1 up", words)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// Median returns the middle of a list that is not empty.
func Median[T cmp.Ordered](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
