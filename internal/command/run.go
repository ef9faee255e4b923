package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
)

// runFlags are the flags of tenure run.
type runFlags struct {
	inputs     []string
	inputsFrom string
	values     []string
	output     string
	format     string
	compare    bool
	rtol, atol float64
	shapes     []string
	upTo       []string
	image      imageFlags
	top        int
	threads    int
	least      bool
	direct     bool
	weights    string
	shared     bool
	json       bool
	profile    bool
	trace      string
	runs       int
	stdin      io.Reader // the input that is called "-"
	sizes      sizes     // what shapes say
	bounds     upTo      // what upTo says
}

const aboutValues = `An input that is no tensor is a .pb
of its kind (SequenceProto, OptionalProto, MapProto); a sequence is also one
file for each element.`

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run MODEL",
		Short: "Run a model on files and print or save the answer",
		Long: `run loads a model, plans its memory for the inputs' shapes, proves the plan,
runs the model and prints the answer, with the bytes promised and measured.

Inputs are .npy, .npz, .pb (an ONNX TensorProto, whose own name counts where
none is given) or a PNG or JPEG picture. A file without a name is for the first
input that no other file is for; - is an .npy from standard input. Without
inputs the missing ones are listed with their types and shapes. Text is read
from arrays of numpy's types S and U. ` + aboutValues + `

A picture is stretched to the input's height and width, or keeps its own where
these are open and --shape gives them no size. Transparent parts are white, an
input of one channel gets the brightness, one of three red, green and blue;
how a camera was held (EXIF) is not looked at. Pixels are 0 to 255, with
fractions where the picture has 16 bits or was stretched. An input of floats
(f16, bf16, f32, f64) gets (pixel * scale - mean) / std, with a scale of 1/255
unless --scale says otherwise. An input of integers gets the pixels as they
are, rounded; with --scale it gets the result of the formula, rounded, and one
that its type does not hold is an error. i8 does not hold pixels: it wants
--scale, such as --scale 1 --mean 128.

--shape gives sizes to open dimensions, for pictures; other files have to have
them. ` + aboutShapes + `

` + aboutUpTo + "\n\n" + aboutPrograms + `

--profile lists where the time goes, by operator and by node, with the bytes that
are read and written and the memory that is live. --trace writes every step into a
file that ui.perfetto.dev opens. With either of them the session is prepared
before the run, so that the figures are not those of a first run.`,
		Example: `  tenure run examples/digits/digits.onnx --input examples/digits/samples/7.png
  tenure run model.onnx --input tokens=ids.npy --input mask=mask.npy --output answers
  tenure run model.onnx --inputs-from test_data_set_0 --compare
  tenure run model.onnx --inputs-from test_data_set_0 --runs 10 --profile --trace trace.json`,
		Args:              exactly("MODEL"),
		ValidArgsFunction: modelFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			f.stdin = cmd.InOrStdin()
			return f.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&f.inputs, "input", "i", nil, "an input, `[NAME=]FILE` (again for more inputs)")
	flags.StringVar(&f.inputsFrom, "inputs-from", "", "read input_0.pb, input_1.pb, ... of `DIR`, in the order of the model's inputs, where no --input is given")
	addValues(cmd, &f.values)
	flags.StringVarP(&f.output, "output", "o", "", "save every output into `DIR`")
	flags.StringVar(&f.format, "format", "npy", "the `FORMAT` in which outputs are saved: npy (NAME.npy) or pb (output_0.pb, ...)")
	flags.BoolVar(&f.compare, "compare", false, "compare with output_0.pb, ... of --inputs-from; exit with 1 where they differ")
	flags.Float64Var(&f.rtol, "rtol", 1e-3, "relative tolerance of --compare for floats")
	flags.Float64Var(&f.atol, "atol", 1e-5, "absolute tolerance of --compare for floats")
	flags.StringArrayVar(&f.shapes, "shape", nil, shapeHelp)
	flags.StringArrayVar(&f.upTo, "up-to", nil, upToHelp)
	f.image.add(cmd)
	flags.IntVar(&f.top, "top", 5, "how many of the largest elements are printed where an output is one row of floats or a few")
	flags.IntVar(&f.threads, "threads", 0, "workers (default: one per processor)")
	flags.BoolVar(&f.least, "least-memory", false, leastHelp)
	addWeights(cmd, &f.weights, &f.direct)
	flags.BoolVar(&f.shared, "shared-weights", false, "read one copy of the weights with all processes that run the model so (Linux)")
	flags.IntVar(&f.runs, "runs", 1, "how often the model is run; the printed time is that of the last run")
	flags.BoolVar(&f.profile, "profile", false, "print the time of the steps of all runs, by operator and by node")
	flags.StringVar(&f.trace, "trace", "", "write the steps of all runs into `FILE`, as a trace in Chrome's JSON format")
	flags.BoolVar(&f.json, "json", false, "print the answer as JSON, with the values of outputs of up to 1000 elements")
	return cmd
}

func (f *runFlags) check(told func(flag string) bool) (err error) {
	if f.sizes, err = parseShapes(f.shapes); err != nil {
		return err
	}
	if f.bounds, err = parseUpTo(f.upTo); err != nil {
		return err
	}
	f.image.scaled = told("scale")
	switch {
	case told("format") && f.output == "":
		return usagef("--format: want --output, the folder in which outputs are saved")
	case (told("rtol") || told("atol")) && !f.compare:
		return usagef("--rtol, --atol: want --compare, which they are for")
	case f.format != "npy" && f.format != "pb":
		return usagef("--format: got %q, want npy or pb", f.format)
	case f.compare && f.values != nil:
		return usagef("--compare: got --value, want the outputs that the model declares")
	case f.compare && f.inputsFrom == "":
		return usagef("--compare: want --inputs-from, whose folder holds the outputs to compare with")
	case f.runs < 1:
		return usagef("--runs: got %d, want 1 or more", f.runs)
	case f.top < 0:
		return usagef("--top: got %d, want zero or more", f.top)
	case f.rtol < 0 || f.atol < 0 || math.IsNaN(f.rtol+f.atol):
		return usagef("--rtol, --atol: got %v and %v, want zero or more", f.rtol, f.atol)
	}
	return errors.Join(checkThreads(f.threads), f.image.check())
}

func (f *runFlags) run(ctx context.Context, w io.Writer, path string) (err error) {
	opts, err := loadOptions(f.weights, f.direct, f.values)
	if err != nil {
		return err
	}
	if f.shared {
		opts = append(opts, tenure.WithSharedWeights())
	}
	var work work
	done := work.begin("loading " + filepath.Base(path))
	m, err := loadModel(path, append(opts, tenure.WithProgress(work.report))...)
	done()
	if err != nil {
		return err
	}
	defer m.Close()
	b, err := f.sizes.bind(m)
	if err != nil {
		return err
	}
	in, err := f.read(m, b)
	defer release(in)
	if err != nil {
		return err
	}
	if f.output != "" {
		if err := makeFolder(f.output); err != nil {
			return err
		}
	}
	a, err := f.answer(ctx, m, in, &work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.release()) }()
	return f.deliver(w, m, a)
}

// deliver compares, saves and prints an answer.
func (f *runFlags) deliver(w io.Writer, m *tenure.Model, a *answer) (err error) {
	if err := a.list(m); err != nil {
		return err
	}
	if f.compare {
		if a.compared, err = f.compareAll(m, a.out); err != nil {
			return err
		}
	}
	if f.output != "" {
		if err = a.save(f.output, f.format, m); err != nil {
			return err
		}
	}
	if f.trace != "" {
		if err := wholefile.Write(f.trace, a.profile.WriteTrace); err != nil {
			return err
		}
		a.trace = f.trace
	}
	if f.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(a.json(f.profile))
	} else {
		err = a.print(reportTo(w), f.profile)
	}
	if err != nil {
		return err
	}
	return a.verdict()
}

// answer plans and runs. The caller releases the outputs.
func (f *runFlags) answer(ctx context.Context, m *tenure.Model, in values, work *work) (*answer, error) {
	bounds, err := f.bounds.options(m, f.sizes)
	if err != nil {
		return nil, err
	}
	how := append(sessionOptions(f.threads), bounds...)
	if f.least {
		how = append(how, tenure.WithLeastMemory())
	}
	s, err := m.NewSession(how...)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	operands := tenure.Inputs{}
	for name, x := range in {
		operands[name] = x
	}
	defer work.begin("running")()
	p, err := s.PlanFor(ctx, operands)
	if err != nil {
		return nil, err
	}
	a := &answer{top: f.top}
	a.plan, a.promised = promiseOf(s, p)
	var opts []tenure.RunOption
	if f.profile || f.trace != "" {
		if err := s.PrepareFor(ctx, operands); err != nil {
			return nil, err
		}
		a.profile = &tenure.Profile{}
		opts = append(opts, tenure.WithProfile(a.profile))
	}
	memory.ResetPeak()
	for range f.runs {
		if err := a.out.Release(); err != nil {
			return nil, err
		}
		start := time.Now()
		if a.out, err = s.Run(ctx, operands, opts...); err != nil {
			return nil, err
		}
		a.took = time.Since(start)
	}
	a.measured, a.shared = measuredOf(memory.Stats()), m.WeightMemory().Shared
	return a, nil
}

// measuredOf returns the memory of a run as package memory counts it: arena,
// scratch, inputs and outputs at their peaks.
func measuredOf(f memory.Figures) int64 {
	return f.Of(memory.Activations).Peak + f.Of(memory.Scratch).Peak + f.Of(memory.IO).Peak
}

func promised(p *plan.Plan) int64 { return p.ArenaBytes + p.ScratchBytes + p.IOBytes }

func release(in values) {
	for _, x := range in {
		_ = x.Release() // it has no other holder
	}
}
