package modeltest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// ScaleOperator is an operator that a user brings: y = factor * x, in place
// where x is given up. seen, if not nil, is told of every call.
func ScaleOperator(seen func(c *op.Call) error) *op.Def {
	return &op.Def{
		Name: "acme.scale", Doc: "multiply by a factor", ONNX: "acme::Scale",
		MinArgs: 1, MaxArgs: 1,
		Attrs: []op.AttrDef{{Name: "factor", Kind: op.Float, Needed: true}},
		Alias: op.SameAs(0),
		Infer: func(s *op.Sig) error {
			if s.Args[0].DType != dtype.F32 {
				return fmt.Errorf("got %s, want f32", s.Args[0])
			}
			s.Results[0] = s.Args[0]
			return nil
		},
		Kernel: func(c *op.Call) error {
			if seen != nil {
				if err := seen(c); err != nil {
					return err
				}
			}
			in, out, factor := c.In[0].Data, c.Out[0].Data, float32(c.Float("factor"))
			for i := 0; i < len(in); i += 4 {
				v := factor * math.Float32frombits(binary.LittleEndian.Uint32(in[i:]))
				binary.LittleEndian.PutUint32(out[i:], math.Float32bits(v))
			}
			return nil
		},
	}
}
