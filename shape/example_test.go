package shape_test

import (
	"fmt"

	"github.com/tenure-go/tenure/shape"
)

// Equal shapes are one pointer; a dimension that is not known yet is a symbol.
func Example() {
	image := shape.MustOf(1, 3, 224, 224)
	again, _ := shape.Parse("[1,3,224,224]")
	fmt.Println(image == again, image.NumElements())

	tokens, _ := shape.FromDims(shape.Sym("batch"), shape.Sym("seq"), shape.N(96))
	bias := shape.MustOf(96)
	sum, _ := shape.Broadcast(tokens, bias)
	fmt.Println(sum, sum == tokens)

	_, err := shape.Broadcast(image, bias)
	fmt.Println(err)
	// Output:
	// true 150528
	// [batch,seq,96] true
	// broadcast: got [1,3,224,224] and [96], want equal sizes or 1 at dimension 3: shape does not fit
}

// A transposed view is a layout over the same bytes.
func ExampleStrided() {
	s := shape.MustOf(3, 2)
	l, _ := shape.Strided(s, 1, 3)
	fmt.Println(l, l.IsContiguous(), l.Overlaps())
	// Output: [3,2] strides [1 3] false false
}
