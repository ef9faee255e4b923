package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// taken is how many numbers at most model take returns.
const taken = 1000

// echo returns its input.
func echo() *onnxfile.Graph {
	g := onnxfile.New(17)
	g.Input("x", onnxfile.F32, onnxfile.Open)
	g.Node("Identity", []string{"x"}, []string{"y"})
	g.Output("y", onnxfile.F32)
	return g
}

// take returns the first numbers of its input.
func take() *onnxfile.Graph {
	g := onnxfile.New(17)
	g.Input("x", onnxfile.F32, onnxfile.Open)
	g.Sizes("from", 0)
	g.Sizes("to", taken)
	g.Node("Slice", []string{"x", "from", "to"}, []string{"y"})
	g.Output("y", onnxfile.F32)
	return g
}

// perceptron has layers of these widths, for any number of rows.
func perceptron(widths ...int) *onnxfile.Graph {
	g := onnxfile.New(17)
	g.Input("x", onnxfile.F32, onnxfile.Open, widths[0])
	at := "x"
	for i, width := range widths[1:] {
		w, h := fmt.Sprintf("w%d", i), fmt.Sprintf("h%d", i)
		g.Weight(w, onnxfile.Uniform(uint64(i), 0.1), widths[i], width)
		g.Node("MatMul", []string{at, w}, []string{h})
		at = fmt.Sprintf("r%d", i)
		if i == len(widths)-2 {
			at = "y"
		}
		g.Node("Relu", []string{h}, []string{at})
	}
	g.Output("y", onnxfile.F32)
	return g
}

// repository writes models, each to a folder with its configuration, if it has
// one, and returns the folder of all.
func repository(dir string, models map[string]*onnxfile.Graph, configs map[string]string) error {
	for name, g := range models {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(to, "model.onnx"))
		if err != nil {
			return err
		}
		_, err = g.WriteTo(f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err == nil && configs[name] != "" {
			err = os.WriteFile(filepath.Join(to, "config.json"), []byte(configs[name]), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
