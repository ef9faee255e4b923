package tenure_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// gated is a model with an operator of the tests: next = state + x,
// t = check(x) before it and y = check(next) after it. check copies its
// operand; it fails where element 0 is negative, and where it is 7 it says so
// on entered and waits for gate.
type gated struct {
	*tenure.Model
	entered, gate chan struct{}
}

func newGated(t *testing.T) *gated {
	t.Helper()
	m := &gated{entered: make(chan struct{}), gate: make(chan struct{})}
	registry, err := op.Builtin().With(&op.Def{
		Name: "acme.check", ONNX: "acme::Check", Doc: "x, unless it is bad", MinArgs: 1, MaxArgs: 1,
		Infer:  func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil },
		Alias:  op.Fresh(),
		Kernel: m.check,
	})
	if err != nil {
		t.Fatal(err)
	}
	var g onnxtest.Graph
	g.Input("state", onnxtest.F32, "n")
	g.Input("x", onnxtest.F32, "n")
	for _, n := range []struct{ op, domain, in, out string }{
		{"Check", "acme", "x", "t"}, {"Add", "", "state x", "next"}, {"Check", "acme", "next", "y"},
	} {
		w := onnxtest.Message(nil)
		for _, in := range strings.Fields(n.in) {
			w = w.Text(1, in)
		}
		g.Nodes = g.Nodes.Bytes(1, w.Text(2, n.out).Text(3, n.out).Text(4, n.op).Text(7, n.domain))
		g.Output(n.out)
	}
	if m.Model, err = tenure.LoadBytes(g.File(), tenure.WithOperators(registry)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func (m *gated) check(c *op.Call) error {
	copy(c.Out[0].Data, c.In[0].Data)
	if len(c.In[0].Data) == 0 {
		return nil
	}
	switch v := *(*float32)(unsafe.Pointer(&c.In[0].Data[0])); {
	case v < 0:
		return fmt.Errorf("got %v, want a number above zero", v)
	case v == 7:
		m.entered <- struct{}{}
		<-m.gate
	}
	return nil
}

// TestFailedRuns fails before and after the first write into a donated state,
// and runs in the same slot again.
func TestFailedRuns(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, newGated(t).Model, tenure.WithThreads(2))
	good := modeltest.Of(t, []float32{1, 2, 3}, 3)
	bad := modeltest.Of(t, []float32{-1, 2, 3}, 3)
	for range 3 {
		state := modeltest.Of(t, []float32{5, 6, 7}, 3)
		_, err := s.Run(context.Background(), tenure.Inputs{"state": state.Donate(), "x": bad})
		if err == nil || errors.Is(err, tenure.ErrPartlyWritten) || !strings.Contains(err.Error(), `node "t"`) {
			t.Errorf("a step before the first write: got %v, want an error of node t that consumed nothing", err)
		}
		if got := modeltest.Values(t, state); got[0] != 5 || got[2] != 7 {
			t.Errorf("got a state of %v after a run that wrote nothing, want it intact", got)
		}
		out := modeltest.Run(t, s, tenure.Inputs{"state": state.Donate(), "x": good})
		if got := modeltest.Values(t, out["y"]); got[0] != 6 || got[2] != 10 {
			t.Errorf("got %v, want [6 8 10]", got)
		}
		out.Release()
		state = modeltest.Of(t, []float32{-5, 6, 7}, 3)
		_, err = s.Run(context.Background(), tenure.Inputs{"state": state.Donate(), "x": good})
		if !errors.Is(err, tenure.ErrPartlyWritten) || !strings.Contains(err.Error(), `node "y"`) {
			t.Errorf("a step after the first write: got %v, want ErrPartlyWritten of node y", err)
		}
		if _, err := state.Use(); !errors.Is(err, tenure.ErrDonated) {
			t.Errorf("use of a state that was written: got %v, want ErrDonated", err)
		}
	}
}

// TestOperandsTwice passes one tensor as two inputs, in each way.
func TestOperandsTwice(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, newGated(t).Model)
	x := modeltest.Of(t, []float32{1, 2, 3}, 3)
	for name, in := range map[string]tenure.Inputs{
		"donated twice":        {"state": x.Donate(), "x": x.Donate()},
		"donated and borrowed": {"state": x.Donate(), "x": x},
	} {
		if _, err := s.Run(context.Background(), in); !errors.Is(err, tenure.ErrShared) {
			t.Errorf("%s: got %v, want ErrShared", name, err)
		}
	}
	for name, in := range map[string]func(*tensor.Tensor) tenure.Inputs{
		"borrowed":            func(x *tensor.Tensor) tenure.Inputs { return tenure.Inputs{"state": x, "x": x} },
		"reused and borrowed": func(x *tensor.Tensor) tenure.Inputs { return tenure.Inputs{"state": x.Reuse(), "x": x} },
		"reused twice":        func(x *tensor.Tensor) tenure.Inputs { return tenure.Inputs{"state": x.Reuse(), "x": x.Reuse()} },
	} {
		y := modeltest.Of(t, []float32{1, 2, 3}, 3)
		out, err := s.Run(context.Background(), in(y))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if next, x := modeltest.Values(t, out["next"]), modeltest.Values(t, out["t"]); next[2] != 6 || x[2] != 3 {
			t.Errorf("%s: got %v and %v, want [2 4 6] and [1 2 3]", name, next, x)
		}
		out.Release()
		if err := y.Release(); (err == nil) != (name == "borrowed") {
			t.Errorf("%s: release afterwards: got %v", name, err)
		}
	}
}

// TestIntoOthers writes outputs into tensors that have another holder or
// another layout.
func TestIntoOthers(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, state, y := modeltest.Of(t, modeltest.Ramp(64*64), 64, 64), modeltest.Of(t, modeltest.Ramp(64*64), 64, 64), modeltest.Of(t, modeltest.Ramp(64*64), 64, 64)
	transposed, err := y.Reuse().Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer transposed.Release()
	for name, c := range map[string]struct {
		in   tenure.Inputs
		into []tenure.RunOption
		want error
	}{
		"a donated input":             {tenure.Inputs{"state": state.Donate(), "x": x}, []tenure.RunOption{tenure.Into("next", y)}, tenure.ErrNotReusable},
		"a donated input, y":          {tenure.Inputs{"state": state.Donate(), "x": x}, []tenure.RunOption{tenure.Into("y", state)}, nil},
		"an input that is reused":     {tenure.Inputs{"state": x, "x": state.Reuse()}, []tenure.RunOption{tenure.Into("next", state)}, nil},
		"twice":                       {tenure.Inputs{"state": x, "x": x}, []tenure.RunOption{tenure.Into("next", state), tenure.Into("next", state)}, tenure.ErrInput},
		"a tensor that is transposed": {tenure.Inputs{"state": x, "x": x}, []tenure.RunOption{tenure.Into("next", transposed)}, tenure.ErrLayout},
	} {
		out, err := s.Run(context.Background(), c.in, c.into...)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
			out.Release()
			continue
		}
		if got := modeltest.Values(t, state)[2]; got != 2.0/8 {
			t.Errorf("%s: got %v in the tensor, want it intact", name, got)
		}
	}
}

// TestIntoReused passes an input to be reused, and another tensor for the
// output: that one is written, and the input is only released.
func TestIntoReused(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, y := modeltest.Of(t, modeltest.Ramp(64*64), 64, 64), modeltest.Of(t, modeltest.Ramp(64*64), 64, 64)
	state, kept := modeltest.Of(t, modeltest.Ramp(64*64), 64, 64), modeltest.Of(t, modeltest.Ramp(64*64), 64, 64)
	want := modeltest.Run(t, s, tenure.Inputs{"state": kept, "x": x})
	defer want.Release()
	for range 2 { // with the plan made, and found
		given, err := state.Copy(memory.IO)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(context.Background(), tenure.Inputs{"state": given.Reuse(), "x": x}, tenure.Into("next", y))
		if err != nil {
			t.Fatal(err)
		}
		out.Release()
		if given.Alive() {
			t.Error("the input that was given up is alive")
		}
		if got, want := modeltest.Values(t, y), modeltest.Values(t, want["next"]); !slices.Equal(got, want) {
			t.Errorf("got %v ..., want %v ...", got[:4], want[:4])
		}
	}
	_, err := s.Run(context.Background(), tenure.Inputs{"state": state, "x": x}, tenure.Into("next", state))
	if !errors.Is(err, tenure.ErrShared) || !strings.Contains(err.Error(), `input "state" of the same run`) {
		t.Errorf("into an input: got %v, want ErrShared with its name", err)
	}
}

// TestNoElements runs on inputs without elements, donated ones too.
func TestNoElements(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x := modeltest.Of(t, []float32{}, 0, 64)
	for range 2 {
		state := modeltest.Of(t, []float32{}, 0, 64)
		out := modeltest.Run(t, s, tenure.Inputs{"state": state.Donate(), "x": x})
		if got := modeltest.Values(t, out["y"])[0]; got != 0 || out["next"].Shape().Size(0) != 0 {
			t.Errorf("got %v and %s, want 0 and no elements", got, out["next"].Shape())
		}
		out.Release()
	}
}

// TestPadsWithoutColumns pools the zeros around images of no columns, and of
// some, from one load: a pool takes the pads in only where there are columns.
func TestPadsWithoutColumns(t *testing.T) {
	memorytest.Check(t)
	var around []byte
	for _, n := range []uint64{0, 0, 1, 1, 0, 0, 1, 1} {
		around = binary.LittleEndian.AppendUint64(around, n)
	}
	for _, pool := range []string{"max_pool", "average_pool"} {
		p := must(ir.Parse(`func @f(%x: f32[1,1,2,w]) {
			weight @around: i64[8]
			%r = relu(%x)
			%p = pad(%r, @around)
			%y = `+pool+`(%p) {kernel_shape = [2, 2]}
			return %y
		}`, op.Builtin()))
		table := ir.WeightMap{"around": around}
		m := must(tenure.LoadProgram(p, table))
		defer m.Close()
		s := modeltest.Session(t, m)
		for _, columns := range []int{3, 0, 2, 0, 1} {
			x := modeltest.Of(t, modeltest.Ramp(2*columns), 1, 1, 2, columns)
			data, _ := x.UnsafeBytes()
			want := must((&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, op.Arg{Type: op.Type{DType: x.DType(), Shape: x.Shape()}, Data: data}))
			out := modeltest.Run(t, s, tenure.Inputs{"x": x})
			if got, _ := out["y"].UnsafeBytes(); !bytes.Equal(got, want[0].Data) {
				t.Errorf("%s of %d columns: got % x, want % x", pool, columns, got, want[0].Data)
			}
			out.Release()
		}
	}
}

// TestCloseWaits closes a session while one run is under way and others wait,
// makes plans at the same time, and ends one that waits.
func TestCloseWaits(t *testing.T) {
	memorytest.Check(t)
	m := newGated(t)
	s := modeltest.Session(t, m.Model, tenure.WithPlans(2))
	x, held := modeltest.Of(t, []float32{1, 2}, 2), modeltest.Of(t, []float32{7, 2}, 2)
	var wg sync.WaitGroup
	run := func(x *tensor.Tensor) {
		out, err := s.Run(context.Background(), tenure.Inputs{"state": x, "x": x})
		if err != nil && (x == held || !errors.Is(err, tenure.ErrClosed)) {
			t.Errorf("a run that had begun: %v", err)
		}
		out.Release()
	}
	wg.Go(func() { run(held) })
	<-m.entered
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	state := modeltest.Of(t, []float32{1, 2}, 2)
	if _, err := s.Run(ctx, tenure.Inputs{"state": state.Donate(), "x": x}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run that waits: got %v, want the context's error", err)
	}
	if got := modeltest.Values(t, state)[1]; got != 2 {
		t.Errorf("got %v from a state whose run never began, want it intact", got)
	}
	for range 3 {
		wg.Go(func() { run(x) })
	}
	for n := 1; n <= 6; n++ {
		wg.Go(func() {
			if _, err := s.Plan(context.Background(), tenure.Shapes{"state": {n}, "x": {n}}); err != nil && !errors.Is(err, tenure.ErrClosed) {
				t.Error(err)
			}
		})
	}
	time.Sleep(5 * time.Millisecond) // most of them wait by now; the test holds either way
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- s.Close() }()
	}
	select {
	case <-closed:
		t.Error("the session closed under a run")
	case <-time.After(5 * time.Millisecond):
	}
	close(m.gate)
	if err := errors.Join(<-closed, <-closed); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestClosedPlans plans with closed sessions and models, whose weights are
// gone.
func TestClosedPlans(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, digits)
	shapes := tenure.Shapes{"image": {1, 1, 8, 8}}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(context.Background(), shapes)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, atSession := s.Plan(context.Background(), shapes)
	_, atModel := m.Plan(context.Background(), shapes)
	_, specialised := m.Specialise(shapes, nil)
	for name, err := range map[string]error{"session": atSession, "model": atModel, "specialise": specialised, "check": m.Check(p)} {
		if !errors.Is(err, tenure.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
}
