package tenure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Model is a loaded model: its program, and the weights that its sessions
// share.
type Model struct {
	file    *onnx.Model
	program *ir.Program // after the load passes; never changed
	inputs  []Info
	named   []namedDim // of inputs
	outputs []Info
	run     *tensor.Operation // of every run: it names the inputs

	composites []*Composite // of the inputs
	states     *stateful    // nil without WithStates

	compressed bool // large constants are packed compressed
	floats     bool // quantised numbers are computed as floats
	direct     bool // convolutions are not transformed

	// compiling is locked while a program is compiled and its weights packed:
	// until then it may read weights that packing would unload.
	compiling  sync.Mutex
	structures structures

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
	// U8, and the last dimension of Shape, which the model's file does not
	// have, is how many bytes each string takes, filled up with zeros. It is
	// the caller's choice for inputs, and a size that a plan is made for.
	// [tensor.OfStrings] and [tensor.OfStringsWide] make such tensors, and
	// [tensor.Strings] reads one.
	Text bool

	// Of is the sequence, optional or map of the file of which this is a part;
	// nil for a tensor.
	Of *Composite
}

// String returns "name: f32[batch,3,224,224]", or "name: string[batch]" for
// text. A sequence, an optional or a map of a [Description] is that of its
// composite.
func (i Info) String() string {
	if i.Of != nil && i.Of.Name == i.Name {
		return i.Of.String()
	}
	return i.Name + ": " + i.typeText()
}

func (i Info) typeText() string {
	t := op.Type{DType: i.DType, Shape: i.Shape}
	if i.Text {
		return t.AsText()
	}
	return t.String()
}

func infoOf(v *ir.Value, text bool) Info {
	return Info{Name: v.Name, DType: v.Type.DType, Shape: v.Type.Shape, Text: text}
}

func names(infos []Info) string {
	list := make([]string, len(infos))
	for i, info := range infos {
		list[i] = info.Name
	}
	return strings.Join(list, ", ")
}

// Inputs describes the model's inputs, in the order of the file. One that is no
// tensor there is several, see [Composite].
func (m *Model) Inputs() []Info {
	if m == nil {
		return nil
	}
	return slices.Clone(m.inputs)
}

// Outputs describes the model's outputs, in the order of the file. One that is
// no tensor there is several, see [Composite].
func (m *Model) Outputs() []Info {
	if m == nil {
		return nil
	}
	return slices.Clone(m.outputs)
}

// output returns the place of an output, -1 for a name that the model has not.
func (m *Model) output(name string) int {
	return slices.IndexFunc(m.outputs, func(info Info) bool { return info.Name == name })
}

// Program returns the model's program after the load passes, for reading.
func (m *Model) Program() *ir.Program {
	if m == nil {
		return nil
	}
	return m.program
}

// Notes are remarks on statements of the model's file and how they were
// handled. Runs and plans add those on dimensions of one name that have had two
// sizes.
func (m *Model) Notes() []string {
	if m.none() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.file.Notes)
}

// note adds a remark, unless it is there.
func (m *Model) note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.file.Notes, text) {
		m.file.Notes = append(m.file.Notes, text)
	}
}

// Close frees the weights as soon as no session uses them. Open sessions keep
// working; new sessions, plans and checks are refused.
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
