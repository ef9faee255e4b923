package tenure

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// maxFold is the most bytes that folding a call may add where the result is
// larger than its operands; maxFill is the most that constant fills of a
// model may take together.
const (
	maxFold = 64 << 10
	maxFill = 1 << 30
)

// Load reads a model from an ONNX file. The file is mapped: weights that are
// aligned in it are used where they lie. Everything that the model needs and
// Tenure lacks is reported in one error. The error of a file that is no model,
// such as a Git LFS pointer or an archive, names its kind; it is [ErrCorrupt].
func Load(path string, opts ...Option) (*Model, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Load(path, o.reading())
	if err != nil {
		return nil, loadError(err)
	}
	return newModel(m, o)
}

// LoadBytes reads a model from the bytes of an ONNX file, which must stay
// unchanged while the model is open. Models with external data are refused.
func LoadBytes(data []byte, opts ...Option) (*Model, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Parse(data, "", o.reading())
	if err != nil {
		return nil, loadError(err)
	}
	return newModel(m, o)
}

// LoadFS reads a model from a file of a file system, such as an embed.FS,
// with its external data beside it.
func LoadFS(fsys fs.FS, name string, opts ...Option) (*Model, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	if fsys == nil {
		return nil, errors.New("load: got no file system, want one")
	}
	m, err := onnx.LoadFS(fsys, name, o.reading())
	if err != nil {
		return nil, loadError(err)
	}
	return newModel(m, o)
}

// loadError converts an error about a name that the caller passed to an error
// of the caller.
func loadError(err error) error {
	if errors.Is(err, onnx.ErrNoValue) {
		return inputError{err}
	}
	return err
}

func collect(opts []Option) (loadOptions, error) {
	o := loadOptions{registry: op.Builtin()}
	for i, f := range opts {
		if f == nil {
			return o, nilOption("load", i)
		}
		f(&o)
	}
	if o.registry == nil {
		return o, errors.New("load: got no operators, want a registry")
	}
	if o.weights < Mapped || o.weights > Compressed {
		return o, fmt.Errorf("weights: got %d, want Mapped, Read or Compressed", o.weights)
	}
	if o.shared != nil {
		return o, o.shared.check()
	}
	return o, nil
}

// reading says how files are read.
func (o *loadOptions) reading() onnx.Options {
	r := onnx.Options{Registry: o.registry, Read: o.weights == Read, Progress: o.watched(), Outputs: o.outputs}
	if o.shared != nil {
		r.Share = o.shared.memory
	}
	return r
}

func newModel(file *onnx.Model, o loadOptions) (*Model, error) {
	m := &Model{file: file, program: file.Program, compressed: o.weights == Compressed, floats: o.floats, direct: o.direct}
	err := cpu.Err()
	if err == nil {
		err = exec.CheckKernels(m.program)
	}
	for i, v := range m.program.Body.Results {
		m.outputs = append(m.outputs, infoOf(v, file.Outputs[i].Text))
	}
	if err == nil {
		err = m.runLoadPasses()
	}
	if err == nil && o.states {
		err = m.keepStates(o.pairs, o.pooled)
	}
	if err == nil {
		err = file.Weights.Prune(m.program)
	}
	if err == nil {
		err = ir.VerifyKnown(m.program, ir.Known(file.Weights))
	}
	if err != nil {
		_ = file.Close() // the first error is the one to know
		return nil, err
	}
	var operands []string
	for i, v := range m.program.Body.Params {
		m.inputs = append(m.inputs, infoOf(v, file.Inputs[i].Text))
		operands = append(operands, fmt.Sprintf("input %q", v.Name))
	}
	m.run = tensor.NewOperation("run", operands...)
	m.named = namedDims(m.inputs)
	m.composites = compositesOf(m.inputs, file.Inputs)
	compositesOf(m.outputs, file.Outputs)
	for i, v := range m.program.Body.Results {
		m.outputs[i].DType, m.outputs[i].Shape = v.Type.DType, v.Type.Shape
	}
	return m, nil
}
