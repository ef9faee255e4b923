package ir_test

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// A program with an operator of one's own that works in place. The verifier
// holds it to the rules that built-in operators are held to.
func Example() {
	double := &op.Def{
		Name: "acme.double", Doc: "each element twice", MinArgs: 1, MaxArgs: 1,
		Infer: func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil },
		Alias: op.SameAs(0),
		Kernel: func(c *op.Call) error {
			for i, b := range c.In[0].Data {
				c.Out[0].Data[i] = 2 * b
			}
			return nil
		},
	}
	registry, err := op.Builtin().With(double)
	if err != nil {
		fmt.Println(err)
		return
	}
	bytes := typ(dtype.U8, 3)

	b := ir.NewBuilder("twice", registry)
	x := b.DonatedParam("x", bytes)
	y := b.Call("acme.double", nil, ir.Donate(x))
	z := b.Call("acme.double", nil, ir.Donate(y))
	b.Return(z)
	p, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)

	results, err := (&ir.Interpreter{}).Run(p, arg(bytes, []byte{1, 2, 3}))
	fmt.Println(results[0].Data, err)

	p.Body.Results = append(p.Body.Results, y)
	fmt.Println(ir.Verify(p))
	// Output:
	// func @twice(donate %x: u8[3]) -> (u8[3]) {
	//   %2: u8[3] = acme.double(donate %x)
	//   %3: u8[3] = acme.double(donate %2)
	//   return %3
	// }
	// [4 8 12] <nil>
	// V15: %3 = acme.double(donate %2) donates %2, which is used after it by the return of its block; move that use before the call, or drop the mark "donate"
}

func ExampleParse() {
	p, err := ir.Parse(`
		func @decode(%k: f32[1,2,1,8], donate %cache: f32[1,2,16,8], %at: i64[1]) {
			%next = tensor_scatter(donate %cache, %k, %at) {axis = 2}   // written in place
			return %next
		}`, op.Builtin())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p, "verified: ", ir.Verify(p))
	// Output:
	// func @decode(%k: f32[1,2,1,8], donate %cache: f32[1,2,16,8], %at: i64[1]) -> (f32[1,2,16,8]) {
	//   %next: f32[1,2,16,8] = tensor_scatter(donate %cache, %k, %at) {axis = 2}
	//   return %next
	// }
	// verified: <nil>
}
