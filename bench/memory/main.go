// Command memory prints what donation saves: the networks of "tenure bench
// memory", and the first of them, ten ReLU on [1000,1000], in ONNX Runtime and
// in gomlx.
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
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/results"
)

const (
	count = 10 // ReLU of the chain
	side  = 1000
)

//go:embed chain.py
var script string

// taken is the memory of a run of the chain in bytes, without its input.
type taken struct {
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Input   int64  `json:"input"`
	Taken   int64  `json:"taken"`
}

func main() {
	python := flag.String("python", filepath.Join(contest.DefaultVenv(), "bin", "python"), "interpreter with onnxruntime and onnx")
	operations := flag.Bool("operations", false, "also print the bytes that each operation moves")
	var output results.Output
	output.Flags(flag.CommandLine)
	flag.Parse()
	if err := run(*python, *operations, output); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(python string, operations bool, output results.Output) error {
	if operations {
		cmd := exec.Command("go", "-C", "..", "run", "./cmd/tenure", "bench", "memory", "--operations")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("tenure bench memory: %w", err)
		}
	}
	list, err := networks()
	if err != nil {
		return err
	}
	var chains []taken
	versions := map[string]string{}
	for _, engine := range []func() (taken, error){func() (taken, error) { return ortChain(python) }, gomlxChain} {
		t, err := engine()
		if err != nil {
			return err
		}
		chains = append(chains, t)
		name, _, _ := strings.Cut(t.Engine, ",")
		versions[name] = strings.TrimPrefix(t.Version, "v")
	}
	r := results.New("memory", versions, "network", "how")
	for _, n := range list {
		n.addTo(r)
	}
	for _, t := range chains {
		r.Add([]string{list[0].Network, t.Engine}, results.Once("peak MiB", mib(t.Input+t.Taken)))
	}
	return output.Write(os.Stdout, r, nil)
}

// network is a row of "tenure bench memory --json", in bytes.
type network struct {
	Network                                 string
	Held, Prompt, Donation, Pooled, Planned usage
	Floor                                   int64
}

type usage struct{ Total, Peak int64 }

func networks() (list []network, err error) {
	cmd := exec.Command("go", "-C", "..", "run", "./cmd/tenure", "bench", "memory", "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("tenure bench memory: %w", err)
	}
	return list, json.Unmarshal(out, &list)
}

func (n network) addTo(r *results.Result) {
	for _, how := range []struct {
		name string
		usage
	}{{"held", n.Held}, {"prompt", n.Prompt}, {"donation", n.Donation}, {"donation, arena", n.Pooled}, {"planned", n.Planned}} {
		r.Add([]string{n.Network, how.name}, results.Once("total MiB", mib(how.Total)), results.Once("peak MiB", mib(how.Peak)))
	}
	r.Add([]string{n.Network, "floor"}, results.Once("peak MiB", mib(n.Floor)))
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

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
