package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check MODEL PLAN.json",
		Short: "Prove a stored plan against a model",
		Long: `check compiles the model for the shapes that the plan names and proves the
plan: that every operand holds its value when it is read, that nothing is
overwritten that is still needed, and that all that the plan states follows
from the model and from its order and places: names, types, sizes, lives,
sums, the peak, the lower bound, what is in place. It says the first violation
and exits with 1 when the plan does not hold. A PLAN.json of - is standard
input.

A PLAN.json that plan --up-to wrote is a promise for many sizes. check makes it
anew, as plan does, and compares the figures: each has to be as large as what
some size takes on this machine.

Not proved, because it is a choice, words, or depends on the machine: threads
and max_concurrent; what steps move; scratch beyond what operators declare; which
weights are packed and into how much, though their sum is; whether the lists of
declined operands and of copies lack an entry; the reasons in these lists and of
unpromised values.`,
		Example: `  tenure plan model.onnx --json > plan.json
  tenure check model.onnx plan.json
  tenure plan model.onnx --json | tenure check model.onnx -
  tenure plan model.onnx --up-to batch=8 --json | tenure check model.onnx -`,
		Args:              exactly("MODEL", "PLAN.json"),
		ValidArgsFunction: modelFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, r, err := readPlan(cmd.InOrStdin(), args[1])
			if err != nil && filepath.Ext(args[0]) == ".json" && filepath.Ext(args[1]) == ".onnx" {
				return usagef("check: got %s %s, want MODEL PLAN.json in this order", args[0], args[1])
			}
			if err != nil {
				return notPlan(args[1], err)
			}
			m, err := loadModel(args[0])
			if err != nil {
				return err
			}
			defer m.Close()
			if r != nil {
				if err := m.CheckRange(cmd.Context(), r); err != nil {
					return fmt.Errorf("%s: %w", args[1], err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the promise holds: %d sizes, %s per run\n", r.Sizes, plan.FormatBytes(r.PerRun()))
				return err
			}
			if err := m.Check(p); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the plan holds: %d steps, %d values, arena %s\n", len(p.Steps), len(p.Values), plan.FormatBytes(p.ArenaBytes))
			return err
		},
	}
}

// notPlan returns the error of a file that could not be read as a plan, in
// other words if it is a model.
func notPlan(path string, err error) error {
	if path == "-" {
		return err
	}
	if _, fault := tenure.Describe(path); fault != nil {
		return err
	}
	return usagef("check: got the model %s as PLAN.json, want a plan: tenure plan %s --json writes one", path, path)
}

// readPlan reads a plan, or a promise for many sizes, from a file, or from
// standard input under the name "-".
func readPlan(in io.Reader, path string) (*plan.Plan, *plan.Range, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, mostPlanBytes))
	if err != nil {
		return nil, nil, err
	}
	var p *plan.Plan
	var r *plan.Range
	if isRange(text) {
		r, err = plan.ReadRangeJSON(bytes.NewReader(text))
	} else {
		p, err = plan.ReadJSON(bytes.NewReader(text))
	}
	if err != nil {
		return nil, nil, wrongFile(path, "a plan in JSON", []string{"a JSON text"}, fmt.Errorf("%s: %w", path, err))
	}
	return p, r, nil
}

// mostPlanBytes bounds the document that is read: 3,000 steps take a megabyte.
const mostPlanBytes = 1 << 30

// isRange reports whether the first field of a document is that of a promise
// for many sizes.
func isRange(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil || open != json.Delim('{') {
		return false
	}
	field, err := d.Token()
	return err == nil && field == "dims"
}
