// Package modeltest is what tests of whole models share: it loads models, runs
// them, makes tensors, and compares results.
//
//	s := modeltest.SessionOf(t, file)
//	out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, data, 2, 4)})
//	got := modeltest.Values(t, out["y"])
//
// Sessions and tensors that its functions make belong to the test and are
// released when it ends. The functions fail the test instead of returning
// errors, and may be called from the goroutine of the test only.
package modeltest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TB is a test, a benchmark, or one try of a drawn test. What the functions of
// this package make for it is released when it ends, in reverse order.
type TB interface {
	rapid.TB
	Cleanup(f func())
}

// Root returns the folder of the module: that of go.mod, around the folder in
// which the test runs.
func Root() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	panic("modeltest: no go.mod around the folder of the test")
}

// Load loads the model of a file until the test ends. A relative path starts in
// the module's folder.
func Load(t TB, name string, opts ...tenure.Option) *tenure.Model {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(Root(), name)
	}
	m, err := tenure.Load(name, opts...)
	return closing(t, m, err)
}

// LoadBytes loads the model in file until the test ends.
func LoadBytes(t TB, file []byte, opts ...tenure.Option) *tenure.Model {
	t.Helper()
	m, err := tenure.LoadBytes(file, opts...)
	return closing(t, m, err)
}

func closing(t TB, m *tenure.Model, err error) *tenure.Model {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Session makes a session of a model, until the test ends.
func Session(t TB, m *tenure.Model, opts ...tenure.SessionOption) *tenure.Session {
	t.Helper()
	s, err := m.NewSession(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// SessionOf makes a session of the model in file, until the test ends; then
// nothing may be left behind.
func SessionOf(t testing.TB, file []byte, opts ...tenure.SessionOption) *tenure.Session {
	t.Helper()
	memorytest.Check(t)
	return Session(t, LoadBytes(t, file), opts...)
}

// Run runs a session. The outputs are released when the test ends; a test may
// release them earlier.
func Run(t TB, s *tenure.Session, in tenure.Inputs, opts ...tenure.RunOption) tenure.Outputs {
	t.Helper()
	out, err := s.Run(context.Background(), in, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Release() })
	return out
}

// Of makes a tensor of a copy of data, until the test ends.
func Of[T dtype.Element](t TB, data []T, dims ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(data, dims...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Release() })
	return x
}

// Ramp returns n numbers from 0 to 2 that are exact in every float type.
func Ramp(n int) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i%17) / 8
	}
	return data
}

// Values returns a copy of the elements of an f32 tensor.
func Values(t TB, x *tensor.Tensor) []float32 {
	t.Helper()
	v, err := tensor.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Address returns where the bytes of a tensor begin.
func Address(x *tensor.Tensor) *byte {
	data, _ := x.UnsafeBytes()
	return &data[0]
}

// Must returns the result of a call, and panics with its error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
