package tenure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// maxFold is the most bytes that folding a call may add where the result is
// larger than its operands; maxFill is the most that constant fills of a
// model may take together.
const (
	maxFold = 64 << 10
	maxFill = 1 << 30
)

// Model is a loaded model: its program, and the weights that its sessions
// share.
type Model struct {
	file    *onnx.Model
	program *ir.Program // after the load passes; never changed
	inputs  []Info
	outputs []Info
	run     *tensor.Operation // of every run: it names the inputs

	compressed bool // large constants are packed compressed

	// compiling is locked while a program is compiled and its weights packed:
	// until then it may read weights that packing would unload.
	compiling sync.Mutex

	mu     sync.Mutex
	users  int // sessions, and calls that read weights
	closed bool
}

// Info describes an input or output of a model. Dimensions may be symbolic.
type Info struct {
	Name  string
	DType dtype.DType
	Shape *shape.Shape // nil when not even the rank is known

	// Text says that the elements are strings, which are bytes here: DType is
	// U8, and the last dimension of Shape, which the model's file does not have,
	// is how many bytes each string takes, filled up with zeros. It is the
	// caller's choice for inputs, and a size that a plan is made for.
	// [tensor.OfStrings] and [tensor.OfStringsWide] make such tensors, and
	// [tensor.Strings] reads one.
	Text bool
}

// String returns "name: f32[batch,3,224,224]", or "name: string[batch]" for
// text.
func (i Info) String() string { return i.Name + ": " + i.typeText() }

func (i Info) typeText() string {
	t := op.Type{DType: i.DType, Shape: i.Shape}
	if i.Text {
		return t.AsText()
	}
	return t.String()
}

// Load reads a model from an ONNX file. The file is mapped: weights that are
// aligned in it are used where they lie. Everything that the model needs and
// Tenure lacks is reported in one error. The error of a file that is no model,
// such as a Git LFS pointer or an archive, says what it is: it is [ErrCorrupt].
func Load(path string, opts ...Option) (*Model, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Load(path, o.reading())
	if err != nil {
		return nil, err
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
		return nil, err
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
		return nil, err
	}
	return newModel(m, o)
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
	r := onnx.Options{Registry: o.registry, Read: o.weights == Read, Progress: o.watched()}
	if o.shared != nil {
		r.Share = o.shared.memory
	}
	return r
}

func newModel(file *onnx.Model, o loadOptions) (*Model, error) {
	m := &Model{file: file, program: file.Program, compressed: o.weights == Compressed}
	err := cpu.Err()
	if err == nil {
		err = exec.CheckKernels(m.program)
	}
	var operands []string
	for i, v := range m.program.Body.Params {
		m.inputs = append(m.inputs, infoOf(v, file.Inputs[i].Text))
		operands = append(operands, fmt.Sprintf("input %q", v.Name))
	}
	m.run = tensor.NewOperation("run", operands...)
	for i, v := range m.program.Body.Results {
		m.outputs = append(m.outputs, infoOf(v, file.Outputs[i].Text))
	}
	if err == nil {
		ctx := &pass.Context{Program: m.program, Constants: file.Weights, MaxFold: maxFold, MaxFill: maxFill}
		err = pass.Run(ctx, pass.Load, nil)
		file.Notes = append(file.Notes, ctx.Notes...)
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
	for i, v := range m.program.Body.Results {
		m.outputs[i].DType, m.outputs[i].Shape = v.Type.DType, v.Type.Shape
	}
	return m, nil
}

func infoOf(v *ir.Value, text bool) Info {
	return Info{Name: v.Name, DType: v.Type.DType, Shape: v.Type.Shape, Text: text}
}

// Inputs describes the model's inputs, in the order of the file.
func (m *Model) Inputs() []Info {
	if m == nil {
		return nil
	}
	return slices.Clone(m.inputs)
}

// Outputs describes the model's outputs, in the order of the file.
func (m *Model) Outputs() []Info {
	if m == nil {
		return nil
	}
	return slices.Clone(m.outputs)
}

// Program returns the model's program after the load passes, for reading.
func (m *Model) Program() *ir.Program {
	if m == nil {
		return nil
	}
	return m.program
}

// Close gives the weights back as soon as no session uses them. Open sessions
// keep working; new sessions, plans and checks are refused.
func (m *Model) Close() error {
	if m.none() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if m.users > 0 {
		return nil
	}
	return m.end()
}

// none reports whether the model is nil or zero, which is treated as closed.
func (m *Model) none() bool { return m == nil || m.file == nil }

func (m *Model) end() error { return m.file.Close() }

// retain keeps the weights until release, for a session or for one call, which
// is named.
func (m *Model) retain(what string) error {
	if m.none() {
		return fmt.Errorf("%s: got no model: %w", what, ErrClosed)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("%s: the model is %w", what, ErrClosed)
	}
	m.users++
	return nil
}

// release ends what retain began; the last one on a closed model ends the
// weights.
func (m *Model) release() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users > 0 || !m.closed {
		return nil
	}
	return m.end()
}

// withWeights runs f while the weights are there.
func (m *Model) withWeights(what string, f func() error) (err error) {
	if err := m.retain(what); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.release()) }()
	m.compiling.Lock()
	defer m.compiling.Unlock()
	return f()
}

// Shapes are the sizes of inputs by name, of bytes where they are text: {2, 8} for two
// strings of up to 8 bytes.
type Shapes map[string][]int

// Plan says what a run with inputs of these shapes will take, before any run:
// every byte, and where each value lies and when. Inputs whose declared shape
// has a size for every dimension may be left out.
func (m *Model) Plan(ctx context.Context, shapes Shapes, opts ...SessionOption) (*plan.Plan, error) {
	if err := ended.Missing(ctx); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	types, err := m.types(shapes)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	o, err := configure(opts)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	var exe *exec.Executable
	err = m.withWeights("plan", func() (err error) {
		if exe, _, err = m.compile(ctx, target{types: types}, o); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return exe.Plan, nil
}

// types completes the shapes with the declared ones.
func (m *Model) types(shapes Shapes) ([]op.Type, error) {
	if m.none() {
		return nil, fmt.Errorf("got no model: %w", ErrClosed)
	}
	types := make([]op.Type, len(m.inputs))
	var open []string
	for i, in := range m.inputs {
		types[i] = op.Type{DType: in.DType, Shape: in.Shape}
		if dims, ok := shapes[in.Name]; ok {
			s, err := shape.Of(dims...)
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", in.Name, err)
			}
			types[i].Shape = s
			continue
		}
		if !types[i].IsStatic() {
			open = append(open, in.String())
		}
	}
	if unknown := m.unknown(maps.Keys(shapes)); unknown != "" {
		return nil, fmt.Errorf("got a shape for %s, want inputs of the model: %s: %w", unknown, names(m.inputs), ErrInput)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("got no shape for %s, want one for every input with open dimensions: %w", strings.Join(open, ", "), ErrInput)
	}
	return types, nil
}

// unknown lists, in order, the given names that no input has.
func (m *Model) unknown(given iter.Seq[string]) string {
	var list []string
	for name := range given {
		if !slices.ContainsFunc(m.inputs, func(in Info) bool { return in.Name == name }) {
			list = append(list, strconv.Quote(name))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func names(infos []Info) string {
	list := make([]string, len(infos))
	for i, info := range infos {
		list[i] = info.Name
	}
	return strings.Join(list, ", ")
}

// Specialise returns the final program for inputs of the given shapes: what a
// run executes and a plan is proved against. After each pass, check sees the
// program; it may be nil.
func (m *Model) Specialise(shapes Shapes, check func(passName string, p *ir.Program) error) (*ir.Program, error) {
	types, err := m.types(shapes)
	if err != nil {
		return nil, err
	}
	var c *specialised
	err = m.withWeights("specialise", func() (err error) {
		c, err = m.verified(target{types: types}, check)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.Program, nil
}

// target is what a program is specialised for.
type target struct {
	types   []op.Type
	donated []bool           // nil: no input is
	value   func(int) []byte // the bytes of an input; nil where no run is under way
}

// specialised is a program for one target.
type specialised struct {
	*pass.Context
	frozen []int // inputs whose values decide a shape and are constants of the program
}

func (m *Model) specialise(t target, check func(string, *ir.Program) error) (*specialised, error) {
	p := m.program.Clone()
	if err := p.Bind(t.types...); err != nil {
		return nil, inputError{err}
	}
	for i, d := range t.donated {
		p.Body.Params[i].Donated = d
	}
	c := &specialised{Context: &pass.Context{Program: p, Constants: &weights.Overlay{Base: m.file.Weights}, MaxFold: maxFold}}
	if err := c.freeze(t); err != nil {
		return nil, err
	}
	var after func(pass.Pass, *ir.Program) error
	if check != nil {
		after = func(ps pass.Pass, p *ir.Program) error { return check(ps.Name, p) }
	}
	if err := pass.Run(c.Context, pass.Specialise, after); err != nil {
		return nil, err
	}
	return c, nil
}

// verified returns the program for a target, verified, for who does not
// compile it.
func (m *Model) verified(t target, check func(string, *ir.Program) error) (*specialised, error) {
	c, err := m.specialise(t, check)
	if err != nil {
		return nil, err
	}
	return c, broken(ir.VerifyKnown(c.Program, ir.Known(c.Constants)))
}

// broken makes a fault of Tenure of the verifier's error about a program that
// passes made.
func broken(err error) error {
	var v *ir.Violation
	if errors.As(err, &v) {
		return fmt.Errorf("BUG: the compiled program breaks a rule: %w", err)
	}
	return err
}

// freeze makes constants of the inputs whose values decide a shape, until all
// shapes are known or nothing more can be done.
func (c *specialised) freeze(t target) error {
	for {
		if err := pass.Run(c.Context, []pass.Pass{pass.Fold}, nil); err != nil {
			return err
		}
		deciders := pass.Deciders(c.Context)
		if len(deciders) == 0 {
			return errors.Join(c.Suspended...)
		}
		if t.value == nil {
			return fmt.Errorf("the values of input %q decide the size of values of the program: it can be planned only when they are given to a run: %w", deciders[0].Name, ErrUnsupported)
		}
		for _, v := range deciders {
			if err := pass.Freeze(c.Context, v, t.value(v.Index)); err != nil {
				return err
			}
			c.frozen = append(c.frozen, v.Index)
		}
	}
}

// Check proves a plan, which may come from a file, against the model: it
// compiles the program for the plan's shapes and simulates the plan over
// bytes. The error is the first rule that does not hold. The doc of package
// plan/check lists the rules, and the few fields that are not proved.
func (m *Model) Check(p *plan.Plan) error {
	if p == nil {
		return fmt.Errorf("check: got no plan, want one: %w", ErrInput)
	}
	shapes := Shapes{}
	for _, s := range p.Shapes {
		at := strings.IndexByte(s.Type, '[')
		if at < 0 {
			return fmt.Errorf("plan: input %q: got type %q, want an element type and sizes: %w", s.Name, s.Type, ErrCorrupt)
		}
		dims, err := shape.Parse(s.Type[at:])
		if err != nil {
			return fmt.Errorf("plan: input %q: %w", s.Name, err)
		}
		if !dims.IsStatic() {
			return fmt.Errorf("plan: input %q: got type %q, want a size for every dimension: %w", s.Name, s.Type, ErrCorrupt)
		}
		shapes[s.Name] = dims.Sizes()
	}
	types, err := m.types(shapes)
	if err != nil {
		return err
	}
	return m.withWeights("check", func() error {
		c, err := m.verified(target{types: types}, nil)
		if err != nil {
			return err
		}
		return check.Check(c.Program, p, c.Constants)
	})
}

// Notes are remarks on what the model's file says and what was done about it.
func (m *Model) Notes() []string {
	if m.none() {
		return nil
	}
	return slices.Clone(m.file.Notes)
}

// compileAndPack makes the executable for a target and packs the weights.
func (m *Model) compileAndPack(ctx context.Context, t target, o sessionOptions) (exe *exec.Executable, frozen []int, err error) {
	m.compiling.Lock()
	defer m.compiling.Unlock()
	exe, frozen, err = m.compile(ctx, t, o)
	if err != nil {
		return nil, nil, err
	}
	return exe, frozen, exe.Pack(ctx)
}

// compile makes the executable for a target, and says which inputs' values it
// is made for.
func (m *Model) compile(ctx context.Context, t target, o sessionOptions) (exe *exec.Executable, frozen []int, err error) {
	c, err := m.specialise(t, nil)
	if err != nil {
		return nil, nil, err
	}
	exe, err = exec.Compile(ctx, c.Program, c.Constants, exec.Options{Threads: o.threads, MaxConcurrent: o.maxConcurrent, Declined: c.Declined, Copies: c.Copies, Store: m.file.Weights, Compressed: m.compressed})
	return exe, c.frozen, broken(err)
}
