package pass

import (
	"bytes"
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Dequantised makes weights of floats of those that calls on floats read
// dequantised, as long as all of them together take no more than four bytes for
// each element of a weight of integers. Otherwise each run would dequantise
// them and keep them in its arena, and no kernel could pack them.
//
// Requires: quantised: what computes on integers reads no floats; fold, which
// has computed what is small, and integers that are computed. It begins and
// ends with dce.
//
// Left to other passes: nothing.
var Dequantised = Pass{Name: "dequantised", Doc: "expand weights whose floats are read", Run: dequantised}

func dequantised(ctx *Context) error {
	if err := DCE.Run(ctx); err != nil {
		return err
	}
	left := int64(leastBudget)
	for _, w := range ctx.Program.Weights {
		if dt := w.Type.DType; dt.IsInt() && ctx.isKnown(w) && w.Type.IsStatic() {
			left += 4 * int64(w.Type.Shape.NumElements())
		}
	}
	replaced := replacer{}
	var err error
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		if err != nil || c.Op != dequantizeOp {
			return
		}
		var w *ir.Value
		if w, err = ctx.expand(c, &left); w != nil {
			replaced[c.Results[0]] = w
		}
	})
	if err != nil || len(replaced) == 0 {
		return err
	}
	replaced.apply(ctx.Program.Body)
	if err := fold(ctx); err != nil { // what moves expanded weights
		return err
	}
	return DCE.Run(ctx)
}

// expand makes a weight of what a call dequantises, nil where an operand is no
// constant.
func (c *Context) expand(call *ir.Call, left *int64) (*ir.Value, error) {
	if slices.ContainsFunc(call.Args, func(a ir.Operand) bool { return a.Value != nil && (!c.isKnown(a.Value) || !a.Value.Type.IsStatic()) }) {
		return nil, nil
	}
	sig := call.Sig(nil)
	if sig.Infer() != nil { // fold says so
		return nil, nil
	}
	n, err := sig.Results[0].Bytes()
	if err != nil || int64(n) > *left {
		return nil, nil
	}
	in := make([]op.Arg, len(call.Args))
	for i, a := range call.Args {
		if a.Value == nil {
			continue
		}
		t := a.Value.Type
		in[i] = op.Arg{Type: t, Layout: shape.RowMajor(t.Shape)}
		if i > 0 {
			data, ok := c.constant(a.Value)
			if !ok {
				return nil, nil
			}
			in[i].Data = bytes.Clone(data)
		}
	}
	if _, err := compute.Bind(&op.Call{Sig: sig, In: in, Out: []op.Arg{{Type: sig.Results[0], Layout: shape.RowMajor(sig.Results[0].Shape)}}}); err != nil {
		return nil, nil
	}
	*left -= int64(n)
	return c.deriveWeight(call.Results[0].Name, sig.Results[0], call.Args[0].Value, 0, func(dst, src []byte) { dequantiseInto(sig, in, dst, src) })
}

// dequantiseInto computes the floats of the integers src, which may lie at any
// address.
func dequantiseInto(sig *op.Sig, in []op.Arg, dst, src []byte) {
	of := slices.Clone(in)
	size, _ := of[0].Type.Bytes()
	if of[0].Data = src[:size]; of[0].Type.DType.Bits() > 8 {
		of[0].Data = bytes.Clone(of[0].Data)
	}
	to := op.Arg{Type: sig.Results[0], Layout: shape.RowMajor(sig.Results[0].Shape), Data: dst}
	if err := compute.Eval(&op.Call{Sig: sig, In: of, Out: []op.Arg{to}}); err != nil {
		panic("BUG: pass: a weight that has a kernel was not dequantised: " + err.Error())
	}
}
