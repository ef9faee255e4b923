package elementwise_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func TestChain(t *testing.T) { kerneltest.EachVariant(t, testChain) }

// testChain draws chains and holds each to what its functions give one by one,
// to the bit.
func testChain(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(80)
	for i := range 300 {
		n := []int{1, 7, 40, 1000, 2100, 40_000}[r.IntN(6)]
		if n == 40_000 && i%5 != 0 {
			n = 33
		}
		chainCase(t, v, r, n)
	}
}

func chainCase(t *testing.T, v *kernel.Variant, r *rand.Rand, n int) {
	t.Helper()
	c := elementwise.Chain{Elements: n}
	s := kerneltest.NewSpace(t)
	var operands, whole [][]float32 // as they are given, and laid out
	for i := range 1 + r.IntN(4) {
		o := elementwise.ChainOperand{Inner: 1, Count: n}
		switch r.IntN(4) {
		case 0:
			o.Count = 1
		case 1:
			o.Count = divisor(r, n)
		case 2:
			o.Inner = divisor(r, n)
			o.Count = divisor(r, n/o.Inner)
		}
		x := kerneltest.In(s, fmt.Sprint("operand ", i), kerneltest.Uniform(r, o.Count))
		all := make([]float32, n)
		for k := range all {
			all[k] = x[k/o.Inner%o.Count]
		}
		c.Operands, operands, whole = append(c.Operands, o), append(operands, x), append(whole, all)
	}
	values := map[int][]float32{} // results by step
	unary := []kernel.UnaryOp{kernel.Abs, kernel.Exp, kernel.Tanh, kernel.Gelu, kernel.LeakyRelu, kernel.Clip, kernel.Sin}
	binary := []kernel.BinaryOp{kernel.Add, kernel.Sub, kernel.Mul, kernel.Max, kernel.Div}
	var even kernel.Nest
	even.Prepare([]int{n}, []int{1}, []int{1}, []int{1})
	pick := func(step int) (int, []float32) {
		if a := r.IntN(len(operands) + min(step, 3)); a < len(operands) {
			return a, whole[a]
		} else {
			back := a - len(operands) + 1
			return -back, values[step-back]
		}
	}
	for i := range 1 + r.IntN(6) {
		a, x := pick(i)
		step := elementwise.ChainStep{Unary: unary[r.IntN(len(unary))], A: a, P: 0.25, Q: 0.75}
		values[i] = make([]float32, n)
		if r.IntN(2) == 0 {
			b, y := pick(i)
			step.IsBinary, step.Binary, step.B = true, binary[r.IntN(len(binary))], b
			elementwise.BinaryF32(v, step.Binary, &even, 0, n, values[i], x, y)
		} else {
			elementwise.UnaryF32(v, step.Unary, values[i], x, step.P, step.Q)
		}
		c.Steps = append(c.Steps, step)
	}
	want := values[len(c.Steps)-1]
	c.Prepare()
	scratch, dst, past := kerneltest.Out[float32](s, "scratch", c.ScratchFloats()), kerneltest.Out[float32](s, "dst", n), kerneltest.Out[float32](s, "streamed", n)
	kerneltest.Backwards(c.Tiles(), func(i int) {
		c.Tile(v, i, scratch, dst, operands, false)
		c.Tile(v, i, scratch, past, operands, true)
	})
	s.Check()
	kerneltest.WantEqual(t, dst, want)
	kerneltest.WantEqual(t, past, want)
	for k, o := range c.Operands {
		if o.Inner != 1 || o.Count != n {
			continue
		}
		given := append([][]float32(nil), operands...)
		given[k] = kerneltest.InOut(s, "in place", operands[k])
		kerneltest.Backwards(c.Tiles(), func(i int) { c.Tile(v, i, scratch, given[k], given, false) })
		s.Check()
		kerneltest.WantEqual(t, given[k], want)
	}
}

// divisor draws a number that divides n.
func divisor(r *rand.Rand, n int) int {
	for {
		if d := 1 + r.IntN(n); n%d == 0 {
			return d
		}
	}
}
