package symbolic_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/symbolic"
)

func Example() {
	seq, past := symbolic.Symbol("seq"), symbolic.Symbol("past")
	scores := symbolic.Const(48).Mul(seq).Mul(seq.Add(past))
	fmt.Println(scores)
	fmt.Println(scores.Bounds(symbolic.Box{"seq": {Lo: 1, Hi: 8}, "past": {Lo: 0, Hi: 7}}))
	// Output:
	// 48·seq·(past + seq)
	// 48 5760 true
}

func TestString(t *testing.T) {
	x, y := symbolic.Symbol("x"), symbolic.Symbol("y")
	n := symbolic.Const
	for _, test := range []struct {
		e    *symbolic.Expr
		want string
	}{
		{n(0), "0"},
		{n(-3), "-3"},
		{nil, "?"},
		{x.Sub(x), "0"},
		{x.Mul(n(-1)), "-x"},
		{n(5).Sub(x), "5 - x"},
		{x.Mul(x).Add(x.Mul(y)), "x·(x + y)"},
		{x.Mul(x).Mul(x).Add(n(1)), "x³ + 1"},
		{n(4).Mul(x).RoundUp(64), "64·⌈x/16⌉"},
		{n(384).Mul(x).RoundUp(64), "384·x"},
		{n(4).Mul(x).Add(n(4)).RoundUp(64), "64·⌊x/16⌋ + 64"},
		{x.Add(n(3)).Floor(5), "⌊(x + 3)/5⌋"},
		{n(10).Mul(x).Add(n(7)).Floor(5), "2·x + 1"},
		{n(6).Mul(x).Mul(x).Add(n(4).Mul(x).Mul(y)), "2·x·(3·x + 2·y)"},
		{symbolic.Max(x, y), "max(x, y)"},
		{symbolic.Max(x, x.Add(n(1))), "x + 1"},
		{symbolic.Min(x, x.Add(n(1))), "x"},
		{symbolic.Max(x, symbolic.Min(y, x)), "x"},
		{symbolic.Min(symbolic.Max(x, y), y), "y"},
		{x.Add(y).Mul(x).Mul(n(6)).Over(x.Add(y)), "6·x"},
		{x.Over(y), "?"},
		{n(3).Mul(x).Over(n(2)), "?"},
		{symbolic.Symbol("a + b").Mul(n(2)), "2·(a + b)"},
	} {
		if got := test.e.String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestOverflowIsUnknown(t *testing.T) {
	big := symbolic.Const(1 << 62)
	x := symbolic.Symbol("x")
	if e := big.Mul(big); e != nil {
		t.Errorf("got %s, want nothing known", e)
	}
	if e := big.Add(big); e != nil {
		t.Errorf("got %s, want nothing known", e)
	}
	if _, ok := big.Mul(x).Eval(map[string]int64{"x": 4}); ok {
		t.Error("got a value beyond int64")
	}
	if _, _, ok := big.Mul(x).Bounds(symbolic.Box{"x": {Lo: 1, Hi: 4}}); ok {
		t.Error("got bounds beyond int64")
	}
}

// drawn is an expression with a function that is computed beside it.
type drawn struct {
	e  *symbolic.Expr
	at func(x, y int64) int64
}

func draw(r *rand.Rand, depth int) drawn {
	if depth == 0 {
		switch r.IntN(3) {
		case 0:
			return drawn{symbolic.Symbol("x"), func(x, _ int64) int64 { return x }}
		case 1:
			return drawn{symbolic.Symbol("y"), func(_, y int64) int64 { return y }}
		}
		n := r.Int64N(9) - 3
		return drawn{symbolic.Const(n), func(_, _ int64) int64 { return n }}
	}
	a, b := draw(r, depth-1), draw(r, r.IntN(depth))
	switch r.IntN(7) {
	case 0:
		return drawn{a.e.Add(b.e), func(x, y int64) int64 { return a.at(x, y) + b.at(x, y) }}
	case 1:
		return drawn{a.e.Sub(b.e), func(x, y int64) int64 { return a.at(x, y) - b.at(x, y) }}
	case 2, 3:
		return drawn{a.e.Mul(b.e), func(x, y int64) int64 { return a.at(x, y) * b.at(x, y) }}
	case 4:
		d := r.Int64N(6) + 1
		return drawn{a.e.Floor(d), func(x, y int64) int64 { return floor(a.at(x, y), d) }}
	case 5:
		return drawn{symbolic.Max(a.e, b.e), func(x, y int64) int64 { return max(a.at(x, y), b.at(x, y)) }}
	}
	return drawn{symbolic.Min(a.e, b.e), func(x, y int64) int64 { return min(a.at(x, y), b.at(x, y)) }}
}

func floor(a, d int64) int64 {
	q := a / d
	if a%d < 0 {
		q--
	}
	return q
}

// Drawn expressions have at every point of a box the value that is computed
// without them, and lie within their bounds. What grows does so.
func TestDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	exact, growing := 0, 0
	for range 5_000 {
		d := draw(r, 1+r.IntN(4))
		box := symbolic.Box{}
		for _, name := range []string{"x", "y"} {
			lo := r.Int64N(12) - 3
			box[name] = symbolic.Range{Lo: lo, Hi: lo + r.Int64N(7)}
		}
		if d.e == nil {
			t.Fatal("got nothing known of small numbers")
		}
		lo, hi, ok := d.e.Bounds(box)
		if !ok {
			t.Fatalf("got no bounds of %s over %v", d.e, box)
		}
		grows := d.e.Grows(box)
		least, most := int64(1<<62), int64(-1<<62)
		for x := box["x"].Lo; x <= box["x"].Hi; x++ {
			for y := box["y"].Lo; y <= box["y"].Hi; y++ {
				want := d.at(x, y)
				if got, ok := d.e.Eval(map[string]int64{"x": x, "y": y}); !ok || got != want {
					t.Fatalf("%s at x=%d y=%d: got %d %v, want %d", d.e, x, y, got, ok, want)
				}
				least, most = min(least, want), max(most, want)
				if grows && (x > box["x"].Lo && d.at(x-1, y) > want || y > box["y"].Lo && d.at(x, y-1) > want) {
					t.Fatalf("%s is said to grow over %v, and decreases before x=%d y=%d", d.e, box, x, y)
				}
			}
		}
		if lo > least || hi < most {
			t.Fatalf("%s over %v: got bounds %d and %d, want at most %d and at least %d", d.e, box, lo, hi, least, most)
		}
		if lo == least && hi == most {
			exact++
		}
		if grows {
			growing++
		}
	}
	if exact < 3_000 || growing < 700 {
		t.Errorf("got %d exact bounds and %d expressions that grow of 5000, want more: the draws test little", exact, growing)
	}
}

// Expressions that are made in another order are equal.
func TestNormalForm(t *testing.T) {
	x, y := symbolic.Symbol("x"), symbolic.Symbol("y")
	a := x.Add(y).Mul(x.Sub(y))
	b := x.Mul(x).Sub(y.Mul(y))
	if !a.Equal(b) || a.Key() != b.Key() {
		t.Errorf("got %s and %s, want one normal form", a, b)
	}
	if got := a.With("y", x); !got.IsConst(0) {
		t.Errorf("got %s with x for y, want 0", got)
	}
	if got := symbolic.Max(x, y); !got.Equal(symbolic.Max(y, x)) {
		t.Errorf("got %s, want the same as with the operands swapped", got)
	}
	if got := a.Over(x.Sub(y)); !got.Equal(x.Add(y)) {
		t.Errorf("got %s, want x + y", got)
	}
}

func TestModulus(t *testing.T) {
	x, y := symbolic.Symbol("x"), symbolic.Symbol("y")
	half := x.Floor(2)
	for _, test := range []struct {
		e    *symbolic.Expr
		want int64
	}{
		{nil, 1}, {x.Mul(y), 1}, {half, 2}, {half.Add(y.Floor(7)), 2}, {symbolic.Max(x.Ceil(6), y), 6}, {half.Add(symbolic.Const(1)).Floor(2).Add(x.Floor(3)), 12},
		{x.Floor(1 << 62).Add(x.Floor(3)).Add(x.Floor(5)), 0},
	} {
		if got := test.e.Modulus("x"); got != test.want {
			t.Errorf("%s: got %d, want %d", test.e, got, test.want)
		}
	}
}
