// Command memory prints what donation saves: the networks of "tenure bench memory", and the first of them, ten ReLU on [1000,1000],
// in ONNX Runtime and in gomlx.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"

	"github.com/tenure-go/tenure/bench/internal/contest"
)

const (
	count = 10 // ReLU of the chain
	side  = 1000
)

//go:embed chain.py
var script string

// taken is what a run of the chain took in bytes, beside its input.
type taken struct {
	About string `json:"about"`
	Input int64  `json:"input"`
	Taken int64  `json:"taken"`
}

func main() {
	python := flag.String("python", filepath.Join(contest.DefaultVenv(), "bin", "python"), "interpreter with onnxruntime and onnx")
	operations := flag.Bool("operations", false, "print too what each operation moves")
	flag.Parse()
	if err := run(*python, *operations); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(python string, operations bool) error {
	args := []string{"-C", "..", "run", "./cmd/tenure", "bench", "memory"}
	if operations {
		args = append(args, "--operations")
	}
	if err := stream(exec.Command("go", args...)); err != nil {
		return fmt.Errorf("tenure bench memory: %w", err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nrelu chain of 10, 1000x1000\tinput and what the run took")
	for _, engine := range []func() (taken, error){func() (taken, error) { return ortChain(python) }, gomlxChain} {
		t, err := engine()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%.2f MiB\n", t.About, float64(t.Input+t.Taken)/(1<<20))
	}
	return w.Flush()
}

func stream(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// ortChain runs the chain in ONNX Runtime, in a process of its own.
func ortChain(python string) (t taken, err error) {
	out, err := exec.Command(python, "-c", script).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return t, fmt.Errorf("ONNX Runtime (python3 ort.py install makes an interpreter that has it): %w", err)
	}
	return t, json.Unmarshal(out, &t)
}
