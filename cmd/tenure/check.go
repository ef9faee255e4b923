package main

import (
	"fmt"
	"os"

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
overwritten that is still needed, and that the figures add up. It says the
first violation and exits with 1 when the plan does not hold.`,
		Example: `  tenure plan model.onnx --json > plan.json
  tenure check model.onnx plan.json`,
		Args: exactly("MODEL", "PLAN.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPlan(args[1])
			if err != nil {
				return err
			}
			m, err := tenure.Load(args[0])
			if err != nil {
				return err
			}
			defer m.Close()
			if err := m.Check(p); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the plan holds: %d steps, %d values, arena %s\n", len(p.Steps), len(p.Values), plan.FormatBytes(p.ArenaBytes))
			return nil
		},
	}
}

func readPlan(path string) (*plan.Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := plan.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
