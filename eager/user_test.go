package eager_test

import (
	"errors"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

func TestBuilder(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, -10, 2)
	at := address(x)
	y := ok(eager.Op("leaky_relu").On(x).Float("alpha", 0.5).Run())(t)
	want(t, y, -5, 2)
	want(t, x, -10, 2)
	z := ok(eager.Op("leaky_relu").On(x).InPlaceIfPossible().Float("alpha", 0.1).Run())(t)
	if address(z) != at {
		t.Error("in place if possible was not")
	}
	w := ok(eager.Op("cast").On(z).Donate().DType("to", dtype.I32).Run())(t)
	if address(w) != at {
		t.Error("donate was not in place")
	}
	s := eager.NewScope()
	b := ok(eager.Op("transpose").In(s).On(y).Semantics(tensor.Borrow).Ints("perm", 0).Run())(t)
	want(t, b, -5, 2)
	if got := s.Stats().Calls; got != 1 {
		t.Errorf("got %d calls of the scope, want 1", got)
	}
	wantErr(t, "close", s.Close(), nil)
	both, err := eager.Op("top_k").On(y).On(index(t, 1)).Results(2).RunAll()
	if err != nil || len(both) != 2 {
		t.Fatalf("got %d results and %v", len(both), err)
	}
	want(t, both[0], 2)
	first := ok(eager.Op("top_k").On(y).On(index(t, 1)).Int("largest", 0).Results(2).Run())(t)
	want(t, first, -5)
	release(t, y, w, both[0], both[1], first)
}

func index(t testing.TB, v int64) *tensor.Tensor {
	x := ok(tensor.Of([]int64{v}, 1))(t)
	t.Cleanup(func() { release(t, x) })
	return x
}

func TestBuilderRefuses(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1)
	for what, c := range map[string]struct {
		b    *eager.Builder
		text string
	}{
		"unknown operator":  {eager.Op("relo").On(x), "relo"},
		"unknown attribute": {eager.Op("relu").On(x).Int("alpha", 1), `"alpha"`},
		"attribute kind":    {eager.Op("leaky_relu").On(x).String("alpha", "1"), "got string, want float"},
		"attribute twice":   {eager.Op("leaky_relu").On(x).Float("alpha", 1).Float("alpha", 1), "twice"},
		"no operand":        {eager.Op("relu").Donate(), "no operand to donate"},
		"bad semantics":     {eager.Op("relu").On(x).Semantics(7), "semantics(7)"},
		"arity":             {eager.Op("relu").On(x).On(x), "got 2 operands, want 1"},
		"results":           {eager.Op("relu").On(x).Results(2), "got 2 results, want 1"},
		"no results":        {eager.Op("relu").On(x).Results(0), "at least 1"},
		"regions":           {eager.Op("if").On(x), "if: got"},
	} {
		err := second(c.b.Run())
		if err == nil {
			t.Errorf("%s: got no error", what)
			continue
		}
		wantErr(t, what, err, err, c.text)
		s := eager.NewScope()
		if ts, err := c.b.In(s).RunAll(); ts != nil || err == nil || s.Err() == nil {
			t.Errorf("%s, in a scope: got %v, and %v of the scope", what, err, s.Err())
		}
		s.Close()
	}
	release(t, x)
}

func TestMapZipApply(t *testing.T) {
	memorytest.Check(t)
	double := func(v float32) float32 { return 2 * v }
	x, y := vector(t, 1, 2, 3), vector(t, 10)
	at := address(x)
	a := ok(eager.Map(x, double))(t)
	want(t, a, 2, 4, 6)
	want(t, x, 1, 2, 3)
	b := ok(eager.Map(x.Donate(), double))(t)
	if address(b) != at {
		t.Error("map of a donated tensor is not in place")
	}
	wantErr(t, "donated", x.Release(), tensor.ErrDonated, "map")
	minus := func(x, y float32) float32 { return x - y }
	c := ok(eager.Zip(y, b, minus))(t)
	want(t, c, 8, 6, 4)
	d := ok(eager.Zip(y, b.Donate(), minus))(t)
	want(t, d, 8, 6, 4)
	if address(d) != at {
		t.Error("zip did not take the right operand's bytes")
	}
	m := of(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	e := ok(eager.Zip(m, d, minus))(t)
	want(t, e, -7, -4, -1, -4, -1, 2)
	f := ok(eager.Apply(d, func(v []float32) { v[0] = float32(len(v)) }))(t)
	want(t, f, 3, 6, 4)
	want(t, d, 8, 6, 4)
	transposed := ok(m.Transpose())(t)
	g := ok(eager.Map(transposed, double))(t)
	want(t, g, 2, 8, 4, 10, 6, 12)

	s := eager.NewScope()
	s.Keep(eager.MapIn(s, eager.ZipIn(s, eager.ApplyIn(s, d, func([]float32) {}), d, minus), double)).Release()
	wantErr(t, "close", s.Close(), nil)
	if eager.MapIn(s, d, double) != nil {
		t.Error("map in a closed scope gave something")
	}

	wantErr(t, "type", second(eager.Map(d, func(v int32) int32 { return v })), tensor.ErrDType, "map: operand 0", "i32")
	wantErr(t, "shape", second(eager.Zip(d, vector2(t), minus)), tensor.ErrShape, "zip")
	release(t, y, a, c, d, m, e, f, transposed, g)
}

func vector2(t testing.TB) *tensor.Tensor {
	x := vector(t, 1, 2)
	t.Cleanup(func() { release(t, x) })
	return x
}

func TestUserFunctionThatPanics(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2)
	bad := func([]float32) { panic("no") }
	err := second(eager.Apply(x, bad))
	if err == nil || errors.Is(err, tensor.ErrPartlyWritten) {
		t.Errorf("borrowed: got %v, want an error that consumed nothing", err)
	}
	want(t, x, 1, 2)
	wantErr(t, "donated", second(eager.Apply(x.Donate(), bad)), tensor.ErrPartlyWritten, "panicked", "user_test.go")
	wantErr(t, "dead", x.Release(), tensor.ErrDonated)
}

// A user's operator runs under the same rules as those of the table.
func TestOperatorOfAUser(t *testing.T) {
	memorytest.Check(t)
	def := &op.Def{
		Name: "acme.half", MinArgs: 1, MaxArgs: 1, Alias: op.SameAs(0),
		Infer: func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil },
		Kernel: func(c *op.Call) error {
			for i := range c.Out[0].Data {
				c.Out[0].Data[i] = c.In[0].Data[i] / 2
			}
			return nil
		},
	}
	x := ok(tensor.Of([]uint8{2, 4, 6}, 3))(t)
	at := address(x)
	y := ok(eager.Call(def).On(x).Donate().Run())(t)
	want(t, y, 1, 2, 3)
	if address(y) != at {
		t.Error("not in place")
	}
	silent := *def
	silent.Name, silent.Alias = "acme.silent", op.Alias{}
	wantErr(t, "undeclared", second(eager.Call(&silent).On(y).Donate().Run()), tensor.ErrNotReusable, "acme.silent: operand 0")
	z := ok(eager.Call(&silent).On(y).InPlaceIfPossible().Run())(t)
	if address(z) == at {
		t.Error("an operator that declares nothing was put in place")
	}
	release(t, z)
}

func scale(t *testing.T) *eager.Func {
	f, err := eager.NewFunc("scale", 2, []int{0}, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		return []*tensor.Tensor{s.Keep(s.Mul(x[0].Reuse(), x[1]))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFuncConsumesWhatItDeclares(t *testing.T) {
	memorytest.Check(t)
	f := scale(t)
	if !f.Consumes(0) || f.Consumes(1) || f.Consumes(2) {
		t.Error("consumes: got another answer than was declared")
	}
	x, k := vector(t, 1, 2), vector(t, 10)
	at := address(x)
	ys, err := f.Call(x, k) // borrowed: the body has a copy
	if err != nil {
		t.Fatal(err)
	}
	want(t, ys[0], 10, 20)
	want(t, x, 1, 2)
	zs, err := f.Call(x.Donate(), k)
	if err != nil {
		t.Fatal(err)
	}
	want(t, zs[0], 10, 20)
	if address(zs[0]) != at {
		t.Error("the donated operand was not computed in")
	}
	wantErr(t, "donated", x.Release(), tensor.ErrDonated)
	wantErr(t, "not consumed", second(f.Call(zs[0], k.Donate())), tensor.ErrNotReusable, "scale: operand 1", "does not consume")
	view := ok(zs[0].View())(t)
	wantErr(t, "shared", second(f.Call(zs[0].Donate(), k)), tensor.ErrShared, "scale: operand 0", "2 holders")
	wantErr(t, "twice", second(f.Call(zs[0].Reuse(), zs[0])), tensor.ErrShared, "listed again")
	err = second(f.Call(k))
	wantErr(t, "count", err, err, "got 1 operands, want 2")
	wantErr(t, "nil", second(f.Call(k, nil)), tensor.ErrNoTensor, "operand 1")

	s := eager.NewScope()
	in, err := f.CallIn(s, zs[0].Reuse(), k)
	if err != nil {
		t.Fatal(err)
	}
	want(t, in[0], 100, 200)
	wantErr(t, "close", s.Close(), nil)
	if in[0].Alive() || zs[0].Alive() {
		t.Error("the scope's result or the operand lives on")
	}
	release(t, ys[0], k, view)
}

func TestFuncThatLeavesItsOperand(t *testing.T) {
	memorytest.Check(t)
	same, err := eager.NewFunc("same", 2, []int{0, 1}, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		return x[:1], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	x, y := vector(t, 1), vector(t, 2)
	at := address(x)
	zs, err := same.Call(x.Donate(), y.Reuse())
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "returned", x.Release(), tensor.ErrDonated, "donated to same")
	wantErr(t, "left alone", y.Release(), tensor.ErrDonated, "donated to same")
	if address(zs[0]) != at {
		t.Error("the operand did not come back in its bytes")
	}
	release(t, zs[0])
}

func TestFuncThatFails(t *testing.T) {
	memorytest.Check(t)
	cause := errors.New("changed my mind")
	late := false
	f, err := eager.NewFunc("fickle", 1, []int{0}, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		if late {
			s.Neg(x[0].Donate())
		}
		return nil, cause
	})
	if err != nil {
		t.Fatal(err)
	}
	x := vector(t, 1)
	wantErr(t, "before", second(f.Call(x.Donate())), cause, "fickle")
	if !x.IsExclusive() {
		t.Error("a body that had consumed nothing consumed its operand")
	}
	late = true
	err = second(f.Call(x.Donate()))
	wantErr(t, "after", err, tensor.ErrPartlyWritten)
	wantErr(t, "after", err, cause)
	wantErr(t, "dead", x.Release(), tensor.ErrDonated)

	lost, _ := eager.NewFunc("lost", 1, nil, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		return []*tensor.Tensor{s.Neg(x[0])}, nil // not kept
	})
	steals, _ := eager.NewFunc("steals", 1, nil, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		return []*tensor.Tensor{s.Keep(s.Neg(x[0].Donate()))}, nil // was only lent
	})
	y := vector(t, 1)
	wantErr(t, "not kept", second(lost.Call(y)), tensor.ErrReleased, "lost: result 0", "kept")
	wantErr(t, "only lent", second(steals.Call(y)), tensor.ErrShared, "2 holders")
	want(t, y, 1)
	_, err = eager.NewFunc("odd", 1, []int{1}, func(*eager.Scope, []*tensor.Tensor) ([]*tensor.Tensor, error) { return nil, nil })
	wantErr(t, "parameter", err, err, "got parameter 1", "0 to 0")
	release(t, y)
}
