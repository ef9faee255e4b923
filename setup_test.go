package tenure_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// tester is a test, a benchmark, or one try of a drawn test. What the functions below make ends with it, in reverse order.
type tester interface {
	rapid.TB
	Cleanup(f func())
}

func load(t tester, name string, opts ...tenure.Option) *tenure.Model {
	t.Helper()
	m, err := tenure.Load(name, opts...)
	return closing(t, m, err)
}

func loadBytes(t tester, file []byte, opts ...tenure.Option) *tenure.Model {
	t.Helper()
	m, err := tenure.LoadBytes(file, opts...)
	return closing(t, m, err)
}

func closing(t tester, m *tenure.Model, err error) *tenure.Model {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func session(t tester, m *tenure.Model, opts ...tenure.SessionOption) *tenure.Session {
	t.Helper()
	s, err := m.NewSession(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sessionOf is all that a test of one file needs: a session of it, and the check that nothing is left behind in the end.
func sessionOf(t testing.TB, file []byte, opts ...tenure.SessionOption) *tenure.Session {
	t.Helper()
	memorytest.Check(t)
	return session(t, loadBytes(t, file), opts...)
}

// run runs a session. A test may release the outputs before they end with it.
func run(t tester, s *tenure.Session, in tenure.Inputs, opts ...tenure.RunOption) tenure.Outputs {
	t.Helper()
	out, err := s.Run(context.Background(), in, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Release() })
	return out
}

func of[T dtype.Element](t tester, data []T, dims ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(data, dims...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Release() })
	return x
}

func ramp(n int) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i%17) / 8
	}
	return data
}

func values(t tester, x *tensor.Tensor) []float32 {
	t.Helper()
	v, err := tensor.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
