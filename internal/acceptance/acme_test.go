package acceptance_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

var acme = filepath.Join(modeltest.Root(), "testdata", "acme.onnx")

func acmeModel(t testing.TB, def *op.Def) (*tenure.Model, *tenure.Session) {
	t.Helper()
	registry, err := op.Builtin().With(def)
	if err != nil {
		t.Fatal(err)
	}
	m := modeltest.Load(t, acme, tenure.WithOperators(registry))
	return m, modeltest.Session(t, m)
}

// acmeData returns the model's result for x: 6 * relu(x) + x.
func acmeData(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = 6*max(v, 0) + v
	}
	return y
}

func TestUserOperator(t *testing.T) {
	memorytest.Check(t)
	inPlace := map[string]bool{}
	def := modeltest.ScaleOperator(func(c *op.Call) error {
		inPlace[c.Node] = unsafe.SliceData(c.In[0].Data) == unsafe.SliceData(c.Out[0].Data)
		return nil
	})
	m, s := acmeModel(t, def)
	if !strings.Contains(m.Program().String(), "acme.scale") {
		t.Errorf("got the program\n%s\nwant acme.scale in it", m.Program())
	}
	x := []float32{-1, 0, 1, 2, 3, -4, 5, 6}
	out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, x, 2, 4)})
	if got, want := modeltest.Values(t, out["y"]), acmeData(x); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := map[string]bool{"first": true, "second": true}; len(inPlace) != 2 || !inPlace["first"] || !inPlace["second"] {
		t.Errorf("got calls in place %v, want %v", inPlace, want)
	}
	p, err := s.Plan(t.Context(), tenure.Shapes{"x": {2, 4}})
	if err != nil {
		t.Fatal(err)
	}
	scales := 0
	for _, a := range p.InPlace {
		if p.Steps[a.Call].Op == "acme.scale" && a.Kind == plan.AliasKind("same") {
			scales++
		}
	}
	if scales != 2 {
		t.Errorf("got %d scales in place in the plan, want 2: %+v", scales, p.InPlace)
	}
	if err := m.Check(p); err != nil {
		t.Error(err)
	}
}

// An operator that declares nothing about its results may keep them anywhere:
// it is never put in place.
func TestUserOperatorUndeclared(t *testing.T) {
	memorytest.Check(t)
	for name, alias := range map[string]op.Alias{"undeclared": {}, "fresh": op.Fresh()} {
		t.Run(name, func(t *testing.T) {
			def := modeltest.ScaleOperator(func(c *op.Call) error {
				if unsafe.SliceData(c.In[0].Data) == unsafe.SliceData(c.Out[0].Data) {
					return errors.New("the result lies in the operand's bytes")
				}
				return nil
			})
			def.Alias = alias
			_, s := acmeModel(t, def)
			x := []float32{1, -2, 3, -4}
			out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, x, 1, 4)})
			if got, want := modeltest.Values(t, out["y"]), acmeData(x); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// A kernel that fails or panics ends the run with an error that names its
// node; the session goes on.
func TestUserOperatorFails(t *testing.T) {
	memorytest.Check(t)
	broken := errors.New("out of scales")
	fail := map[string]func() error{
		"error":         func() error { return broken },
		"panic":         func() error { panic("no scale") },
		"runtime panic": func() error { return fmt.Errorf("%v", []int(nil)[1:][len("x")]) },
		"nil":           func() error { return (*op.Sig)(nil).Def.Arity(1, 1) },
	}
	for name, f := range fail {
		t.Run(name, func(t *testing.T) {
			failing := true
			_, s := acmeModel(t, modeltest.ScaleOperator(func(c *op.Call) error {
				if failing && c.Node == "second" {
					return f()
				}
				return nil
			}))
			in := tenure.Inputs{"x": modeltest.Of(t, modeltest.Ramp(4), 1, 4)}
			_, err := s.Run(t.Context(), in)
			if err == nil {
				t.Fatal("got a run, want an error")
			}
			text := err.Error()
			if !strings.Contains(text, `"second"`) || !strings.Contains(text, "acme.scale") || strings.Contains(text, "BUG:") || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line that names acme.scale and the node \"second\"", text)
			}
			if name == "error" && !errors.Is(err, broken) {
				t.Errorf("got %v, want it to wrap the kernel's error", err)
			}
			failing = false
			out, err := s.Run(t.Context(), in)
			if err != nil {
				t.Fatalf("the run afterwards: %v", err)
			}
			if err := out.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUserOperatorShapeRuleFails(t *testing.T) {
	memorytest.Check(t)
	def := modeltest.ScaleOperator(nil)
	def.Infer = func(*op.Sig) error { return errors.New("no such shape") }
	registry, err := op.Builtin().With(def)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenure.Load(acme, tenure.WithOperators(registry)); err == nil || !strings.Contains(err.Error(), `"first"`) {
		t.Errorf("got %v, want an error that names the node \"first\"", err)
	}
}

// A model whose operators are not brought says which, and at which nodes.
func TestUserOperatorMissing(t *testing.T) {
	memorytest.Check(t)
	_, err := tenure.Load(acme)
	if !errors.Is(err, tenure.ErrUnsupported) {
		t.Fatalf("got %v, want %v", err, tenure.ErrUnsupported)
	}
	for _, want := range []string{"acme", "Scale", "first", "second"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	// One that is declared but has no kernel loads no further.
	def := modeltest.ScaleOperator(nil)
	def.Kernel = nil
	registry, err := op.Builtin().With(def)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tenure.Load(acme, tenure.WithOperators(registry))
	if !errors.Is(err, tenure.ErrUnsupported) || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "acme.scale") {
		t.Errorf("got %v, want %v for acme.scale at node first", err, tenure.ErrUnsupported)
	}
}

// The operator of these tests behaves as it declares.
func TestUserOperatorDeclarations(t *testing.T) {
	data := make([]byte, 16)
	for i := range 4 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i)-1.5))
	}
	arg := optest.Operand{Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(4)}, Data: data}
	if err := optest.Check(modeltest.ScaleOperator(nil), optest.Case{Args: []optest.Operand{arg}, Attrs: []op.Attr{{Name: "factor", Value: 2.0}}}); err != nil {
		t.Error(err)
	}
}
