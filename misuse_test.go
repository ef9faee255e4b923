package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// An output is requested by its name, and the error for a wrong name lists the
// outputs.
func TestOutputsByName(t *testing.T) {
	memorytest.Check(t)
	x := must(tensor.Of([]float32{1, 2}, 2))
	out := tenure.Outputs{"scores": x, "boxes": x}
	if got, err := out.Get("scores"); got != x || err != nil {
		t.Errorf("got %v and %v, want the output", got, err)
	}
	_, err := out.Get("score")
	wantMisuse(t, "typo", err, tenure.ErrInput, `got no "score"`, `want one of "boxes", "scores"`)
	_, err = tenure.Outputs(nil).Get("y")
	wantMisuse(t, "none", err, tenure.ErrInput, "there are no outputs")
	_, err = tensor.Values[float32](out["score"])
	wantMisuse(t, "values of a typo", err, tenure.ErrNoTensor, "nil")
	if errors.Is(err, tenure.ErrReleased) {
		t.Errorf("values of a typo: got %v, want no word of a release", err)
	}
	if err := x.Release(); err != nil {
		t.Error(err)
	}
}

func wantMisuse(t *testing.T, what string, err, kind error, texts ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want an error of kind %v", what, err, kind)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %q, want it to say %q", what, err, text)
		}
	}
}

// A caller's mistake is an error before anything is consumed.
func TestMisuseIsAnError(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, "testdata/alias.onnx")
	s := modeltest.Session(t, m)
	x := must(tensor.Of(make([]float32, 8), 8))
	defer x.Release()
	in := tenure.Inputs{m.Inputs()[0].Name: x}
	y := m.Outputs()[0].Name
	run := func(ctx context.Context, in tenure.Inputs, opts ...tenure.RunOption) error {
		out, err := s.Run(ctx, in, opts...)
		if err == nil {
			err = out.Release()
		}
		return err
	}
	var none context.Context
	ctx := context.Background()
	wantMisuse(t, "nil context", run(none, in), nil, "run: got a nil context")
	wantMisuse(t, "nil option", run(ctx, in, nil), nil, "run: option 0 is nil")
	wantMisuse(t, "into nil", run(ctx, in, tenure.Into(y, nil)), tenure.ErrNoTensor, "Into")
	wantMisuse(t, "into a zero tensor", run(ctx, in, tenure.Into(y, &tensor.Tensor{})), tenure.ErrNoTensor, "Into")
	wantMisuse(t, "a zero tensor", run(ctx, tenure.Inputs{m.Inputs()[0].Name: &tensor.Tensor{}}), tenure.ErrNoTensor)
	_, err := s.Plan(none, nil)
	wantMisuse(t, "plan", err, nil, "plan: got a nil context")
	_, err = m.Plan(none, nil)
	wantMisuse(t, "plan of a model", err, nil, "plan: got a nil context")
	_, err = s.PlanFor(none, in)
	wantMisuse(t, "plan for", err, nil, "got a nil context")
	_, err = m.NewSession(nil)
	wantMisuse(t, "nil session option", err, nil, "option 0 is nil")
	_, err = tenure.Load("testdata/alias.onnx", nil)
	wantMisuse(t, "nil load option", err, nil, "option 0 is nil")
	_, err = tenure.Load("testdata/alias.onnx", tenure.WithOperators(nil))
	wantMisuse(t, "no operators", err, nil, "got no operators")
	wantMisuse(t, "no plan", m.Check(nil), tenure.ErrInput)
	for _, s := range []*tenure.Session{nil, {}} {
		_, err = s.Run(ctx, in)
		wantMisuse(t, "no session", err, tenure.ErrClosed)
	}
	for _, m := range []*tenure.Model{nil, {}} {
		_, err = m.NewSession()
		wantMisuse(t, "no model", err, tenure.ErrClosed)
		_, err = m.Plan(ctx, nil)
		wantMisuse(t, "no model to plan", err, tenure.ErrClosed)
	}
	if got := fmt.Sprintf("%v %v %.1f", (*tensor.Tensor)(nil), &tensor.Tensor{}, &tensor.Tensor{}); strings.Contains(got, "PANIC") {
		t.Errorf("shown: got %s", got)
	}
	_, err = tensor.New(dtype.F32, nil)
	wantMisuse(t, "nil shape", err, tenure.ErrShape, "no shape")
	_, err = tensor.New(dtype.F32, &shape.Shape{})
	wantMisuse(t, "zero shape", err, tenure.ErrShape, "no shape")
}

// A tensor whose buffer was released twice has no bytes, and its error names
// the reason.
func TestTensorOfALostBuffer(t *testing.T) {
	memorytest.Check(t)
	b := must(memory.Alloc(8, memory.IO))
	x := must(tensor.FromBuffer(b, 0, dtype.F32, shape.RowMajor(shape.MustOf(2))))
	for range 2 {
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tensor.Values[float32](x)
	wantMisuse(t, "values", err, tenure.ErrReleased, "gone", "released by somebody who did not hold it")
	_, err = tensor.Read[float32](x)
	wantMisuse(t, "read", err, tenure.ErrReleased, "gone")
	_, err = tensor.Write[float32](x)
	wantMisuse(t, "write", err, tenure.ErrReleased, "gone")
	_, err = tensor.Take("relu", x.Donate())
	wantMisuse(t, "donate", err, tenure.ErrReleased, "gone")
	_, err = tensor.Take("relu", x)
	wantMisuse(t, "borrow", err, tenure.ErrReleased, "gone")
	_, err = x.Export(tensor.ReadOnlyExport)
	wantMisuse(t, "export", err, tenure.ErrReleased, "gone")
	_ = x.Release()
}
