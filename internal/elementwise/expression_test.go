package elementwise

import (
	"math"
	"testing"
)

func TestExpressions(t *testing.T) {
	for _, f := range Functions() {
		e := f.Expression()
		if last := Value(len(e.Nodes) - 1); e.Result != last {
			t.Errorf("%s: got the result %d, want the last step %d", f.Name, e.Result, last)
		}
		for v := range e.Nodes {
			for _, arg := range e.Nodes[v].Operands() {
				if int(arg) >= v {
					t.Errorf("%s: step %d takes value %d", f.Name, v, arg)
				}
			}
		}
		for v, n := range e.Uses() {
			if n == 0 {
				t.Errorf("%s: step %d is not used", f.Name, v)
			}
		}
	}
}

// TestBinaryExpressions evaluates formulas of two operands, in which y is the
// parameter.
func TestBinaryExpressions(t *testing.T) {
	for _, f := range Binaries() {
		if (f.Expression() == nil) != (f.Formula == nil) {
			t.Errorf("%s: got the expression %v, want one if there is a formula", f.Name, f.Expression())
		}
	}
	f := &Binary{Formula: func(b *Builder, x, y Value) Value { return b.Sub(x, b.Mul(y, y)) }}
	if got := f.Expression().Eval(5, 3); got != -4 {
		t.Errorf("got %v, want -4", got)
	}
}

func TestRecord(t *testing.T) {
	e := Record(func(b *Builder, x Value, p []Value) Value {
		b.Exp(x) // is not used
		twice := b.Add(p[1], p[1])
		return b.Select(b.Less(x, b.Const(0)), b.Mul(x, twice), b.Mul(x, b.Add(p[1], p[1])))
	}, 2)
	if len(e.Nodes) != 6 { // x, p[1], twice, 0, the product and the choice
		t.Errorf("got %d steps, want 6: %v", len(e.Nodes), e.Nodes)
	}
	if got := e.Eval(3, 0, 5); got != 30 {
		t.Errorf("got %v, want 30", got)
	}
	same := 0
	for _, is := range e.Invariant() {
		if is {
			same++
		}
	}
	if same != 3 || !e.IsArithmetic() || !e.Has(Select, Exp) || e.Has(Exp) {
		t.Errorf("got %d invariant steps, arithmetic %v, want 3 and true", same, e.IsArithmetic())
	}
}

func TestRange(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		f      Formula
		lo, hi float64
	}{
		"x":       {identity, -inf, inf},
		"min":     {func(b *Builder, x Value, _ []Value) Value { return b.Min(b.Const(2), x) }, -inf, 2},
		"clip":    {func(b *Builder, x Value, _ []Value) Value { return b.Max(b.Min(b.Const(2), x), b.Const(-1)) }, -1, 2},
		"neg":     {func(b *Builder, x Value, _ []Value) Value { return b.Neg(b.Relu(x)) }, -inf, 0},
		"abs":     {func(b *Builder, x Value, _ []Value) Value { return b.Abs(b.Min(x, b.Const(-3))) }, 3, inf},
		"sigmoid": {step((*Builder).Sigmoid), 0, 1},
	} {
		e := Record(c.f, 0)
		if lo, hi := e.Range(e.Result); lo != c.lo || hi != c.hi {
			t.Errorf("%s: got %v to %v, want %v to %v", name, lo, hi, c.lo, c.hi)
		}
	}
}

// TestSelectIgnoresTheOther takes a NaN where it is not asked for.
func TestSelectIgnoresTheOther(t *testing.T) {
	e := Record(func(b *Builder, x Value, _ []Value) Value {
		return b.Select(b.Less(x, b.Const(0)), b.Log(x), b.Select(b.Equal(x, b.Const(1)), b.Const(7), x))
	}, 0)
	if got := e.Eval(2); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := e.Eval(1); got != 7 {
		t.Errorf("got %v, want 7", got)
	}
	if got := e.Eval(-1); got == got {
		t.Errorf("got %v, want NaN", got)
	}
}
