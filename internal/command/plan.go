package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/plan/page"
)

func planCommand() *cobra.Command {
	var shapes, values, bounds, ranges, donated []string
	var asJSON, symbolic, least, direct bool
	var svg, html, weights string
	var threads, concurrent int
	cmd := &cobra.Command{
		Use:               "plan MODEL",
		Short:             "Report the memory of a run beforehand",
		Long:              aboutPlan + aboutShapes + "\n\n" + aboutUpTo,
		Example:           planExamples,
		Args:              exactly("MODEL"),
		ValidArgsFunction: modelFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			sizes, err := parseShapes(shapes)
			if err != nil {
				return err
			}
			upTo, err := parseUpTo(bounds)
			if err != nil {
				return err
			}
			if upTo != nil && (svg != "" || html != "") {
				return usagef("--svg, --html: got --up-to, want one set of sizes (--shape)")
			}
			opts, err := planOptions(threads, concurrent, least, donated, symbolic || upTo != nil)
			if err != nil {
				return err
			}
			if svg != "" && svg == html {
				return usagef("--svg, --html: got %s for both, want two files", svg)
			}
			how, err := loadOptions(weights, direct, values)
			if err != nil {
				return err
			}
			switch {
			case symbolic && upTo != nil:
				return usagef("--symbolic, --up-to: want one of them; --range has the sizes for formulas")
			case symbolic:
				return planFormulas(cmd, args[0], sizes, ranges, how, opts, asJSON, svg, html)
			case len(ranges) > 0:
				return usagef("--range: want --symbolic with it: a plan is for one set of sizes")
			case upTo != nil:
				return planUpTo(cmd, args[0], upTo, sizes, how, opts, asJSON)
			}
			p, err := planOf(cmd, args[0], sizes, how, opts)
			if err != nil {
				return err
			}
			return writeDocument(cmd, documentOf(p), asJSON, svg, html)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&shapes, "shape", nil, shapeHelp)
	flags.StringArrayVar(&bounds, "up-to", nil, upToHelp)
	flags.BoolVar(&symbolic, "symbolic", false, "print formulas of the open dimensions, for many sizes")
	flags.StringArrayVar(&ranges, "range", nil, "sizes of an open dimension, `NAME=FROM..TO` or NAME=TO, with --symbolic (again for more)")
	addValues(cmd, &values)
	flags.BoolVar(&asJSON, "json", false, "print the whole plan as JSON, for tenure check")
	flags.StringVar(&svg, "svg", "", "draw the plan into `FILE`: time across, address up")
	flags.StringVar(&html, "html", "", "write a page into `FILE` that shows where the memory goes: to zoom, search and click")
	flags.IntVar(&threads, "threads", 0, "workers per run (default: one per processor)")
	addWeights(cmd, &weights, &direct)
	flags.StringArrayVar(&donated, "donate", nil, "plan for runs to which the input `NAME` is donated (again for more inputs)")
	flags.BoolVar(&least, "least-memory", false, leastHelp)
	flags.IntVar(&concurrent, "max-concurrent", 1, "runs at a time that the total counts, each with an arena of its own")
	return cmd
}

// planOptions are the options of the sessions that a plan is for; many says
// that it is for many sets of sizes.
func planOptions(threads, concurrent int, least bool, donated []string, many bool) ([]tenure.SessionOption, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	if concurrent < 1 || concurrent > maxConcurrent {
		return nil, usagef("--max-concurrent: got %d, want 1 to %d", concurrent, maxConcurrent)
	}
	if donated != nil && many {
		return nil, usagef("--donate: got --symbolic or --up-to, want one set of sizes (--shape)")
	}
	opts := append(sessionOptions(threads), tenure.WithMaxConcurrent(concurrent), tenure.WithDonated(donated...))
	if least {
		opts = append(opts, tenure.WithLeastMemory())
	}
	return opts, nil
}

// aboutPlan is the help of plan up to --shape.
const aboutPlan = `plan compiles a model for one set of input shapes and reports the memory of
a run: weights, arena, scratch, inputs and outputs, the lower bound of the arena,
the step at the peak and the values that live there, and the results that were
put in place or not, with reasons. The plan is proved before it is shown.

--symbolic plans for many sizes instead, and prints what a run takes as formulas
of the open dimensions, for each structure of the model: arena, inputs, outputs
and weights, the moments at which the arena is fullest, the sizes from which on
another formula holds, and a picture of the bytes of a run against each dimension.
--range seq=1..512 says which sizes a dimension takes; one without a range or a
size has the first 256, or fewer where there are several. Up to 4096 sets of sizes are
planned, each of them, and the formulas compared with each plan; of larger ranges
those along each dimension. --svg, --html and --json write the formulas then.

` + aboutPrograms + "\n\n"

const planExamples = `  tenure plan examples/digits/digits.onnx --shape image=1,1,8,8
  tenure plan decoder.onnx --shape batch=1 --shape sequence=16
  tenure plan encoder.onnx --up-to sequence=512,batch=8
  tenure plan model.onnx --json > plan.json
  tenure plan model.onnx --html plan.html
  tenure plan decoder.onnx --symbolic --shape batch=1 --range sequence=1..512`

// document is a plan, or formulas, in the forms that can be written.
type document struct{ json, svg, html, report func(io.Writer) error }

func documentOf(p *plan.Plan) document {
	return document{json: p.WriteJSON, svg: p.WriteSVG, html: func(w io.Writer) error { return page.Write(w, p) }, report: p.Report}
}

// writeDocument writes a document as JSON, into the named files, or as a
// report.
func writeDocument(cmd *cobra.Command, d document, asJSON bool, svg, html string) error {
	notes := cmd.OutOrStdout()
	if asJSON {
		notes = cmd.ErrOrStderr()
	}
	if err := writeDrawing(notes, svg, d.svg); err != nil {
		return err
	}
	if err := writeDrawing(notes, html, d.html); err != nil {
		return err
	}
	switch {
	case asJSON:
		return d.json(cmd.OutOrStdout())
	case svg != "" || html != "":
		return nil
	}
	return d.report(reportTo(cmd.OutOrStdout()))
}

// writeDrawing writes a drawing into a file, if there is to be one, and says
// so.
func writeDrawing(notes io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if err := wholefile.Write(path, write); err != nil {
		return err
	}
	_, err := fmt.Fprintf(notes, "wrote %s\n", clean(path))
	return err
}

// addValues adds the flag that says which values are the outputs.
func addValues(cmd *cobra.Command, values *[]string) {
	cmd.Flags().StringArrayVar(values, "value", nil, "compute the value `NAME`, one between two layers for instance, instead of the declared outputs (again for more values)")
}

// loadOptions says how a model is loaded: how its weights are held, and which
// values are its outputs.
func loadOptions(weights string, direct bool, values []string) ([]tenure.Option, error) {
	opts, err := weightOptions(weights)
	if direct {
		opts = append(opts, tenure.WithDirectConvolutions())
	}
	if err == nil && values != nil {
		opts = append(opts, tenure.WithOutputs(values...))
	}
	return opts, err
}

// addWeights adds the flags that say how weights are held.
func addWeights(cmd *cobra.Command, weights *string, direct *bool) {
	cmd.Flags().StringVar(weights, "weights", "mapped", "`HOW` weights are held: mapped, read, or compressed (large matrices in about 27 of 32 bits)")
	cmd.Flags().BoolVar(direct, "direct-convolutions", false, "multiply every tap of 3x3 convolutions: smaller weights and rounding errors, more time")
}

func weightOptions(how string) ([]tenure.Option, error) {
	for word, w := range map[string]tenure.Weights{"mapped": tenure.Mapped, "read": tenure.Read, "compressed": tenure.Compressed} {
		if word == how {
			return []tenure.Option{tenure.WithWeights(w)}, nil
		}
	}
	return nil, usagef("--weights: got %q, want mapped, read or compressed", how)
}

// maxConcurrent keeps sums of bytes far from overflow.
const maxConcurrent = 1 << 16

// maxThreads is more than any machine has: each thread has scratch of its own.
const maxThreads = 1024

func checkThreads(n int) error {
	if n < 0 || n > maxThreads {
		return usagef("--threads: got %d, want 0 to %d", n, maxThreads)
	}
	return nil
}

const leastHelp = "put more results in place, also where that takes longer"

func sessionOptions(threads int) []tenure.SessionOption {
	if threads > 0 {
		return []tenure.SessionOption{tenure.WithThreads(threads)}
	}
	return nil
}

func planOf(cmd *cobra.Command, path string, given sizes, how []tenure.Option, opts []tenure.SessionOption) (*plan.Plan, error) {
	var w work
	defer w.begin("planning")()
	m, err := loadModel(path, append(how, tenure.WithProgress(w.report))...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	b, err := given.bind(m)
	if err != nil {
		return nil, err
	}
	p, err := m.Plan(cmd.Context(), b.shapes, opts...)
	return p, b.hint(err)
}
