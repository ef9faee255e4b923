package op_test

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// An operator of the program's own: its shape rule, alias rule and kernel are
// one declaration, in a registry of its own.
func Example() {
	double := &op.Def{
		Name: "acme.double", Doc: "doubles each element of x, which are bytes",
		MinArgs: 1, MaxArgs: 1,
		Alias: op.SameAs(0),
		Infer: func(s *op.Sig) error {
			if s.Args[0].DType != dtype.U8 {
				return fmt.Errorf("operand 0: got %s, want u8: %w", s.Args[0], dtype.ErrDType)
			}
			s.Results[0] = s.Args[0]
			return nil
		},
		Kernel: func(c *op.Call) error {
			for i, v := range c.In[0].Data {
				c.Out[0].Data[i] = 2 * v
			}
			return nil
		},
	}
	ops, err := op.Builtin().With(double)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &op.Sig{
		Def:     ops.Lookup("acme.double"),
		Args:    []op.Type{{DType: dtype.U8, Shape: shape.MustOf(2, 3)}},
		Results: make([]op.Type, 1),
	}
	fmt.Println(op.InferTypes(s), s.Results[0])
	kind, _ := s.AliasOf(0, 0)
	fmt.Println(kind)

	s.Args[0].DType = dtype.F32
	fmt.Println(op.InferTypes(s))
	// Output:
	// <nil> u8[2,3]
	// same
	// acme.double: operand 0: got f32[2,3], want u8: element type does not fit
}
