package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/onnx"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
)

// runFlags are the flags of tenure run.
type runFlags struct {
	inputs     []string
	inputsFrom string
	output     string
	format     string
	compare    bool
	rtol, atol float64
	image      imageFlags
	top        int
	threads    int
	json       bool
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run MODEL",
		Short: "Run a model on files and print or save the answer",
		Long: `run loads a model, plans its memory for the inputs' shapes, proves the plan,
runs the model and prints the answer, with the bytes promised and measured.

Inputs are .npy, .npz, .pb (an ONNX TensorProto, whose own name counts where
none is given) or a PNG or JPEG picture, which is resized to the input. A file
without a name is for the first input that has none. Without inputs the
missing ones are listed with their types.`,
		Example: `  tenure run examples/digits/digits.onnx --input examples/digits/samples/7.png
  tenure run model.onnx --input tokens=ids.npy --input mask=mask.npy --output answers
  tenure run model.onnx --inputs-from test_data_set_0 --compare`,
		Args: exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&f.inputs, "input", "i", nil, "an input, `[NAME=]FILE` (again for more inputs)")
	flags.StringVar(&f.inputsFrom, "inputs-from", "", "read input_0.pb, input_1.pb, ... of `DIR`, in the order of the model's inputs")
	flags.StringVarP(&f.output, "output", "o", "", "save every output into `DIR`")
	flags.StringVar(&f.format, "format", "npy", "how outputs are saved: npy (NAME.npy) or pb (output_0.pb, ...)")
	flags.BoolVar(&f.compare, "compare", false, "compare with output_0.pb, ... of --inputs-from; exit with 1 where they differ")
	flags.Float64Var(&f.rtol, "rtol", 1e-3, "relative tolerance of --compare")
	flags.Float64Var(&f.atol, "atol", 1e-5, "absolute tolerance of --compare")
	flags.Float64Var(&f.image.scale, "scale", 1.0/255, "what the pixels of a picture, 0 to 255, are multiplied with")
	flags.Float64SliceVar(&f.image.mean, "mean", nil, "what is subtracted after that, per channel")
	flags.Float64SliceVar(&f.image.std, "std", nil, "what the rest is divided by, per channel")
	flags.IntVar(&f.top, "top", 5, "how many of the largest elements of an output are printed")
	flags.IntVar(&f.threads, "threads", 0, "workers (default: one per processor)")
	flags.BoolVar(&f.json, "json", false, "print the answer as JSON")
	return cmd
}

func (f *runFlags) check() error {
	switch {
	case f.format != "npy" && f.format != "pb":
		return usagef("--format: got %q, want npy or pb", f.format)
	case f.compare && f.inputsFrom == "":
		return usagef("--compare: want --inputs-from, whose folder holds the outputs to compare with")
	case f.top < 0:
		return usagef("--top: got %d, want zero or more", f.top)
	case f.threads < 0:
		return usagef("--threads: got %d, want zero or more", f.threads)
	}
	return f.image.check()
}

func (f *runFlags) run(ctx context.Context, w io.Writer, path string) (err error) {
	done := working("loading " + filepath.Base(path))
	m, err := tenure.Load(path)
	done()
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession(sessionOptions(f.threads)...)
	if err != nil {
		return err
	}
	defer s.Close()
	in, err := f.read(m)
	defer release(in)
	if err != nil {
		return err
	}
	shapes := tenure.Shapes{}
	for name, x := range in {
		shapes[name] = x.Shape().Sizes()
	}
	done = working("running")
	defer func() { done() }()
	p, err := s.Plan(ctx, shapes)
	if err != nil {
		return err
	}
	operands := tenure.Inputs{}
	for name, x := range in {
		operands[name] = x
	}
	memory.ResetPeak()
	start := time.Now()
	out, err := s.Run(ctx, operands)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Release()) }()
	took := time.Since(start)
	measured := memory.Stats()
	done()
	done = func() {}
	a := answer{names: m.Outputs(), out: out, plan: p, took: took, top: f.top, measured: measuredOf(measured)}
	if f.compare {
		if a.compared, err = f.compareAll(m, out); err != nil {
			return err
		}
	}
	if f.output != "" {
		if err := f.save(m, out); err != nil {
			return err
		}
	}
	if f.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(a.json())
	} else {
		err = a.print(w)
	}
	if err != nil {
		return err
	}
	return a.verdict()
}

// measuredOf is what a run took by the memory package's own count: arena,
// scratch, inputs and outputs at their peaks.
func measuredOf(f memory.Figures) int64 {
	return f.Of(memory.Activations).Peak + f.Of(memory.Scratch).Peak + f.Of(memory.IO).Peak
}

func promised(p *plan.Plan) int64 { return p.ArenaBytes + p.ScratchBytes + p.IOBytes }

func release(in map[string]*tensor.Tensor) {
	for _, x := range in {
		_ = x.Release() // held by nobody else
	}
}

// save writes every output into the folder of --output.
func (f *runFlags) save(m *tenure.Model, out tenure.Outputs) error {
	if err := os.MkdirAll(f.output, 0o777); err != nil {
		return err
	}
	for i, info := range m.Outputs() {
		x := out[info.Name]
		if f.format == "pb" {
			file := filepath.Join(f.output, fmt.Sprintf("output_%d.pb", i))
			if err := writeFile(file, func(w io.Writer) error { return onnx.WriteTensor(w, info.Name, x) }); err != nil {
				return err
			}
			continue
		}
		if err := npy.WriteFile(filepath.Join(f.output, fileName(info.Name)+".npy"), x); err != nil {
			return err
		}
	}
	return nil
}

// fileName makes a name of a model one that every file system takes.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, name)
}
