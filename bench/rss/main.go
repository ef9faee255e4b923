// Command rss holds a run's memory, as the system sees it, against its plan.
//
//	go run ./rss [flags] MODEL [NAME=SIZE,SIZE,...]...
//
// It loads the model with its weights in memory, plans, notes the resident
// size of the process, and resets the system's high-water mark. It then runs
// the model once and prints the rise of the mark beside the bytes that the
// plan promised for arena, scratch and outputs. The difference is the Go
// runtime's memory and partial pages. Linux only. Everything is released at
// the end; the program is one goroutine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func main() {
	log.SetFlags(0)
	var output results.Output
	output.Flags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() < 1 {
		log.Fatal("usage: rss [flags] MODEL [NAME=SIZE,SIZE,...]...")
	}
	if err := measure(flag.Arg(0), flag.Args()[1:], output); err != nil {
		log.Fatal(err)
	}
}

func measure(path string, sizes []string, output results.Output) error {
	m, err := tenure.Load(path, tenure.WithWeights(tenure.Read))
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	in, shapes, err := inputs(m, sizes)
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := s.Plan(ctx, shapes)
	if err != nil {
		return err
	}
	given := int64(0)
	for _, o := range in {
		given += int64(o.Tensor().NumBytes())
	}
	promised := p.ArenaBytes + p.ScratchBytes + p.IOBytes - given // the inputs are there already
	runtime.GC()
	debug.FreeOSMemory()
	before, err := engine.Resident("VmRSS")
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the high-water mark: %w", err)
	}
	out, err := s.Run(ctx, in)
	if err != nil {
		return err
	}
	defer out.Release()
	after, err := engine.Resident("VmHWM")
	if err != nil {
		return err
	}
	rose := after - before
	r := results.New("rss", nil, "model")
	r.Add([]string{filepath.Base(path)}, results.Once("promised MiB", mib(promised)), results.Once("rose MiB", mib(rose)), results.Once("difference MiB", mib(rose-promised)))
	return output.Write(os.Stdout, r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: promised %.2f MiB, the high-water mark rose by %.2f MiB, difference %+.2f MiB\n",
			path, mib(promised), mib(rose), mib(rose-promised))
		return err
	})
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// inputs makes zeros of the given or declared sizes; open dimensions are 1.
func inputs(m *tenure.Model, sizes []string) (tenure.Inputs, tenure.Shapes, error) {
	in, shapes := tenure.Inputs{}, tenure.Shapes{}
	for _, info := range m.Inputs() {
		dims := []int{}
		for _, d := range info.Shape.Dims() {
			n, ok := d.Size()
			if !ok {
				n = 1
			}
			dims = append(dims, n)
		}
		for _, s := range sizes {
			if list, ok := strings.CutPrefix(s, info.Name+"="); ok {
				dims = dims[:0]
				for _, word := range strings.Split(list, ",") {
					n, err := strconv.Atoi(word)
					if err != nil {
						return nil, nil, fmt.Errorf("%s: got size %q, want a number", s, word)
					}
					dims = append(dims, n)
				}
			}
		}
		sh, err := shape.Of(dims...)
		if err != nil {
			return nil, nil, err
		}
		n, err := op.Type{DType: info.DType, Shape: sh}.Bytes()
		if err != nil {
			return nil, nil, err
		}
		x, err := tensor.FromBytes(info.DType, sh, make([]byte, n))
		if err != nil {
			return nil, nil, err
		}
		in[info.Name], shapes[info.Name] = x, dims
	}
	return in, shapes, nil
}
