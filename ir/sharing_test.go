package ir_test

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// sharing runs programs in the way most likely to show a fault: every view is a
// view, every donated operand that a result may take is taken, an undeclared
// operator returns its operand whenever it can, and operands that were given up
// and not taken are overwritten. For a program that the verifier accepts, its
// results must equal those of the interpreter, which shares nothing.
type sharing struct {
	pick    func(n int) int // which of several operands to take
	weights ir.WeightMap
	env     map[*ir.Value]op.Arg
	takes   int // results in the bytes of a donated operand so far
}

func (s *sharing) run(p *ir.Program, inputs []op.Arg) ([]op.Arg, error) {
	s.env = map[*ir.Value]op.Arg{}
	before := map[*ir.Value][]byte{}
	for i, v := range p.Body.Params {
		s.env[v] = arg(inputs[i].Type, slices.Clone(inputs[i].Data))
		if !v.Donated {
			before[v] = inputs[i].Data
		}
	}
	for _, w := range p.Weights {
		s.env[w] = arg(w.Type, slices.Clone(s.weights[w.Name]))
		before[w] = s.weights[w.Name]
	}
	out, err := s.block(p.Body)
	if err != nil {
		return nil, err
	}
	for v, data := range before {
		if !bytes.Equal(s.env[v].Data, data) {
			return nil, fmt.Errorf("%s was overwritten", v)
		}
	}
	return out, nil
}

func arg(t op.Type, data []byte) op.Arg {
	return op.Arg{Type: t, Layout: shape.RowMajor(t.Shape), Data: data}
}

func (s *sharing) block(b *ir.Block) ([]op.Arg, error) {
	for _, c := range b.Calls {
		if err := s.call(c); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
	}
	var out []op.Arg
	for _, v := range b.Results {
		out = append(out, s.env[v])
	}
	return out, nil
}

func (s *sharing) call(c *ir.Call) error {
	in := make([]op.Arg, len(c.Args))
	for i, o := range c.Args {
		if o.Value != nil {
			in[i] = s.env[o.Value]
		}
	}
	var out []op.Arg
	var err error
	if c.Op.Branch {
		out, err = s.block(c.Regions[1-int(in[0].Data[0])])
	} else {
		out, err = s.compute(c, in)
	}
	if err != nil {
		return err
	}
	s.overwriteGivenUp(c, in, out)
	for i, v := range c.Results {
		if v != nil {
			s.env[v] = out[i]
		}
	}
	return nil
}

func (s *sharing) compute(c *ir.Call, in []op.Arg) ([]op.Arg, error) {
	sig := c.Sig(nil)
	for i := range in {
		sig.Args[i] = in[i].Type
	}
	sig.Known = func(arg int) ([]byte, bool) { return in[arg].Data, in[arg].Data != nil }
	if err := op.InferTypes(sig); err != nil {
		return nil, err
	}
	out := make([]op.Arg, len(c.Results))
	computed := false
	for i := range out {
		out[i] = s.place(c, sig, in, i)
		if out[i].Data == nil {
			out[i] = arg(sig.Results[i], bytes.Repeat([]byte{0xEE}, byteLen(sig.Results[i])))
			computed = true
		} else if !s.isView(c, sig, i) && c.Op.Alias.Declared() {
			computed = true
		}
	}
	if computed {
		return out, c.Op.Kernel(&op.Call{Sig: sig, In: in, Out: out})
	}
	return out, nil
}

func (s *sharing) isView(c *ir.Call, sig *op.Sig, result int) bool {
	for i := range c.Args {
		if kind, _ := sig.AliasOf(i, result); kind == op.View {
			return true
		}
	}
	return false
}

// place returns the operand bytes that the result takes, none for fresh ones.
func (s *sharing) place(c *ir.Call, sig *op.Sig, in []op.Arg, result int) op.Arg {
	var places []op.Arg
	want := sig.Results[result]
	for i, o := range c.Args {
		if o.Value == nil {
			continue
		}
		kind, offset := sig.AliasOf(i, result)
		switch {
		case kind == op.View:
			return arg(want, in[i].Data[offset:offset+byteLen(want)])
		case kind != 0 && o.Donate, !c.Op.Alias.Declared() && i == 0: // undeclared operators here return operand 0
			places = append(places, arg(want, in[i].Data))
		}
	}
	if len(places) == 0 {
		return op.Arg{}
	}
	s.takes++
	return places[s.pick(len(places))]
}

// overwriteGivenUp writes over donated bytes that are in no result.
func (s *sharing) overwriteGivenUp(c *ir.Call, in, out []op.Arg) {
	saved := make([][]byte, len(out))
	for i := range out {
		saved[i] = slices.Clone(out[i].Data)
	}
	for i, o := range c.Args {
		if o.Donate {
			for j := range in[i].Data {
				in[i].Data[j] = 0xDD
			}
		}
	}
	for i := range out {
		copy(out[i].Data, saved[i])
	}
}
