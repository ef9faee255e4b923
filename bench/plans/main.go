// Command plans says what runs of the benchmarks' models take in memory, by
// their plans. Nothing runs.
//
//	go run ./plans [-models resnet50,...] [-results FILE]
//
// The arena is without inputs, outputs and weights. The lower bound is the most
// that is live at any one moment under the plan's order and aliasing: no
// placement can go below it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/bench/internal/suite"
	"github.com/tenure-go/tenure/plan"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("plans", flag.ExitOnError)
	names := flags.String("models", "", "models to plan, by commas; all when empty")
	lights := flags.String("light", strings.Join(suite.LightFolders(), ","), "folders with light models, by commas")
	var output results.Output
	output.Flags(flags)
	flags.Parse(args)
	chosen, err := suite.Choose(suite.Models(strings.Split(*lights, ",")), *names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := results.New("plans", nil, "model")
	for _, m := range chosen {
		p, err := planOf(m, filepath.Join(dir, m.Name))
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		r.Add([]string{m.Name}, results.Once("arena MiB", mib(p.ArenaBytes)), results.Once("lower bound MiB", mib(p.LowerBoundBytes)),
			results.Once("inputs and outputs MiB", mib(p.IOBytes)), results.Once("weights MiB", mib(p.WeightBytes)))
	}
	return output.Write(w, r, nil)
}

// planOf writes the model's file, and plans a run of it.
func planOf(m suite.Model, dir string) (*plan.Plan, error) {
	defer os.RemoveAll(dir)
	job, err := contest.Prepare(m.Name, dir, m.Build, m.Becomes)
	if err != nil {
		return nil, err
	}
	model, err := tenure.Load(job.File())
	if err != nil {
		return nil, err
	}
	defer model.Close()
	return model.Plan(context.Background(), nil)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
