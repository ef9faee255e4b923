package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// programExt is the extension of files with the text of a program.
const programExt = ".ir"

const aboutPrograms = `MODEL may be the text of a program (package ir) in a file NAME.ir. Its weights
are the tensors of their names in NAME.safetensors beside it, or else the arrays
WEIGHT.npy in the same folder. Statements that write values (add_(%x, %y), views)
are allowed; docs/in-place.md describes them.`

// loadModel loads a model file, or a program.
func loadModel(path string, opts ...tenure.Option) (*tenure.Model, error) {
	if filepath.Ext(path) != programExt {
		return tenure.Load(path, opts...)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := ir.Parse(string(text), op.Builtin())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	table, err := readWeights(path, p)
	if err != nil {
		return nil, err
	}
	m, err := tenure.LoadProgram(p, table, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// readWeights reads the weights of a program from the files beside it.
func readWeights(path string, p *ir.Program) (table ir.WeightMap, err error) {
	if len(p.Weights) == 0 {
		return nil, nil
	}
	beside := strings.TrimSuffix(path, programExt) + ".safetensors"
	f, err := safetensors.Open(beside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f = nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", beside, err)
	default:
		defer func() { err = errors.Join(err, f.Close()) }()
	}
	table = ir.WeightMap{}
	for _, w := range p.Weights {
		x, from, err := openWeight(f, path, beside, w)
		if err != nil {
			return nil, err
		}
		if table[w.Name], err = weightBytes(w, x); err != nil {
			return nil, fmt.Errorf("%s: weight %q: %w", from, w.Name, err)
		}
	}
	return table, nil
}

// openWeight returns the tensor of a weight, which the caller releases, and the
// file that it is from: the one with all weights, f, if that is there and has
// it, or else one of its own.
func openWeight(f *safetensors.File, path, beside string, w *ir.Value) (x *tensor.Tensor, from string, err error) {
	if f != nil {
		if x, err = f.Tensor(w.Name); err == nil {
			return x, beside, nil
		}
		if !errors.Is(err, safetensors.ErrName) {
			return nil, "", fmt.Errorf("%s: weight %q: %w", beside, w.Name, err)
		}
	}
	name := w.Name + ".npy"
	if !filepath.IsLocal(name) {
		return nil, "", fmt.Errorf("%s: weight %q: got a name that is no file of the folder, want its tensor in %s", path, w.Name, beside)
	}
	from = filepath.Join(filepath.Dir(path), name)
	x, err = npy.ReadFile(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%s: weight %q: got no bytes, want a tensor in %s or the file %s: %w", path, w.Name, beside, from, err)
	case err != nil:
		return nil, "", fmt.Errorf("%s: weight %q: %w", from, w.Name, err)
	}
	return x, from, nil
}

// weightBytes copies the bytes of a weight, and releases its tensor.
func weightBytes(w *ir.Value, x *tensor.Tensor) (data []byte, err error) {
	defer func() { err = errors.Join(err, x.Release()) }()
	if x.DType() != w.Type.DType || x.Shape() != w.Type.Shape {
		return nil, fmt.Errorf("got %s%s, want %s: %w", x.DType(), x.Shape(), w.Type, tenure.ErrShape)
	}
	b, err := x.Use()
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return bytes.Clone(b.Data), nil
}
