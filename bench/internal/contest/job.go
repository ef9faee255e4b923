package contest

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
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
	OV     string // ov.py; empty where OpenVINO does not take part
	CPU    string // the highest instruction set that Tenure and OpenVINO may use: TENURE_CPU
	Arena  bool   // ONNX Runtime's memory arena, and one for Tenure's outputs
	Into   bool   // outputs go into the same bytes on every run, instead of new ones

	Weights string // how Tenure holds weights: "mapped" or "compressed"
	Turns   int    // turns of each engine
	Millis  int    // length of a turn
	Least   bool   // a turn counts as its shortest run instead of its median
	Peak    int    // runs whose peak is taken
	Calls   bool   // how long each of Tenure's calls took, too

	Between func() // runs in every turn, after both engines; may be nil
}

// Flags makes flags for the options.
func (o *Options) Flags(fs *flag.FlagSet) {
	fs.StringVar(&o.Python, "python", filepath.Join(DefaultVenv(), "bin", "python"), "interpreter with onnxruntime: see ort.py install")
	fs.StringVar(&o.Script, "ort", "ort.py", "ONNX Runtime's side of the contest")
	fs.StringVar(&o.CPU, "cpu", os.Getenv("TENURE_CPU"), "highest instruction set for Tenure and OpenVINO: portable (Tenure only), avx2, avx512; what the machine has when empty")
	fs.BoolVar(&o.Arena, "arena", true, "ONNX Runtime's memory arena, and an arena for Tenure's outputs")
	fs.BoolVar(&o.Into, "into", o.Into, "outputs go into the same bytes on every run")
	fs.IntVar(&o.Turns, "turns", 8, "turns of each engine")
	fs.IntVar(&o.Millis, "ms", 60, "length of a turn in milliseconds: one run at least")
	fs.BoolVar(&o.Least, "least", false, "a turn counts as its shortest run, instead of its median: for machines that others keep busy")
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

// Open takes a model of a folder as zoo/make.py writes it: model.onnx, and
// inputs.json, which describes the inputs and names the files beside it that
// have their elements.
func Open(name, folder, dir string) (*Job, error) {
	data, err := os.ReadFile(filepath.Join(folder, "inputs.json"))
	if err != nil {
		return nil, err
	}
	j := &Job{name: name, dir: dir, file: filepath.Join(folder, "model.onnx")}
	if err := json.Unmarshal(data, &j.inputs); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, "inputs.json"), err)
	}
	for i := range j.inputs {
		j.inputs[i].File = filepath.Join(folder, j.inputs[i].File)
	}
	file, err := os.Open(j.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// Whoever loads it first must not be the one who waits for the disk.
	if j.weights, err = io.Copy(io.Discard, file); err != nil {
		return nil, err
	}
	return j, os.MkdirAll(dir, 0o777)
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

// Run lets Tenure and its opponents run the model with a number of threads. A
// model that OpenVINO does not take is measured without it: Row.Without has
// the reason.
func (j *Job) Run(threads int, o Options) (Row, error) {
	row := Row{Model: j.name, Held: o.Weights, Threads: threads, CPU: o.CPU, Weights: j.weights}
	before := busy()
	sides := []*Side{&row.Tenure, &row.ORT}
	names := []string{tenureName, ortName}
	if o.OV != "" {
		sides, names = append(sides, &row.OpenVINO), append(names, openVINOName)
	}
	var players []Player
	var replies []engine.Reply
	pids := []int{os.Getpid()}
	for i, name := range names {
		p, err := o.Start(name)
		if err != nil {
			return row, err
		}
		defer p.Close()
		reply, err := j.load(Player{p, sides[i]}, threads, o)
		if err != nil && name == openVINOName {
			row.OpenVINO, row.Without = Side{}, err
			continue
		}
		if err != nil {
			return row, err
		}
		players, replies, pids = append(players, Player{p, sides[i]}), append(replies, reply), append(pids, p.PID())
	}
	var err error
	if row.Difference, row.Largest, err = Compare(replies[0], replies[1]); err != nil {
		return row, err
	}
	if err := Alternate(o, players...); err != nil {
		return row, err
	}
	if o.Calls {
		r, err := players[0].Ask(engine.Request{Do: "profile", Runs: 9})
		if err != nil {
			return row, err
		}
		row.Calls = r.Calls
	}
	row.Others = before.others(pids...)
	return row, nil
}

// The names of engines, which Start takes.
const (
	tenureName   = "Tenure"
	ortName      = "ONNX Runtime"
	openVINOName = "OpenVINO"
)

// Start starts the process of "Tenure", "ONNX Runtime" or "OpenVINO".
func (o Options) Start(name string) (*engine.Process, error) {
	if name == tenureName {
		return engine.StartTenure("TENURE_CPU=" + o.CPU)
	}
	script, env := o.Script, []string(nil)
	if name == openVINOName {
		script = o.OV
		if o.CPU != "" {
			env = append(env, "ONEDNN_MAX_CPU_ISA="+isa[o.CPU])
		}
	}
	p, err := engine.Start(name, []string{o.Python, script, engine.ServeArg}, env)
	if err != nil {
		return nil, fmt.Errorf("%w (python3 ort.py install installs it)", err)
	}
	return p, nil
}

// isa are oneDNN's words for instruction sets. It has none for portable loops.
var isa = map[string]string{"portable": "SSE41", "avx2": "AVX2", "avx512": "AVX512_CORE_BF16"}

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
			turn := Median(r.Nanos)
			if o.Least {
				turn = slices.Min(r.Nanos)
			}
			p.Side.turns = append(p.Side.turns, turn)
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

// load loads the model, takes the peak of its first runs and the time of the
// first one, and returns what describes the files of its outputs.
func (j *Job) load(p Player, threads int, o Options) (r engine.Reply, err error) {
	if err := j.Load(p, threads, o); err != nil {
		return r, err
	}
	if r, err = p.Ask(engine.Request{Do: "peak", Runs: o.Peak}); err != nil {
		return r, err
	}
	p.Side.Idle, p.Side.Peak = r.Before, r.After
	if len(r.Nanos) > 0 {
		p.Side.First = p.Side.Load + r.Nanos[0]
	}
	dir, err := os.MkdirTemp(j.dir, "out")
	if err != nil {
		return r, err
	}
	return p.Ask(engine.Request{Do: "outputs", Dir: dir})
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
