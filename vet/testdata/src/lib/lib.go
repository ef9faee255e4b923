package lib

import (
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

// Normalize gives x up.
func Normalize(x *tensor.Tensor) (*tensor.Tensor, error) { // want Normalize:`consumes 0, gives`
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return nil, err
	}
	return y, nil
}

// Store keeps x somewhere that no analysis sees.
//
//tenure:consumes x
func Store(name string, x *tensor.Tensor) { kept[name] = x } // want Store:`consumes 1`

var kept = map[string]*tensor.Tensor{}

// Sum looks at x.
func Sum(x *tensor.Tensor) float32 { // want Sum:`borrows 0`
	vs, err := tensor.Values[float32](x)
	if err != nil {
		return 0
	}
	return vs[0]
}
