// Package misuse uses a tensor after it gave it up, and forgets another.
package misuse

import (
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func chain() (*tensor.Tensor, error) {
	x, err := tensor.Of([]float32{1, -1}, 2)
	if err != nil {
		return nil, err
	}
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return nil, err
	}
	return eager.Add(x, y)
}
