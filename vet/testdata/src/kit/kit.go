// Package kit is a program's own functions over tensors, for others.
package kit

import (
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func Check(err error) {
	if err != nil {
		panic(err)
	}
}

func Make(n int) (*tensor.Tensor, error) { return tensor.Zeros[float32](n) }

func Pair() (a, b *tensor.Tensor, err error) {
	a, err = Make(1)
	if err != nil {
		return nil, nil, err
	}
	b, err = Make(2)
	if err != nil {
		a.Release()
		return nil, nil, err
	}
	return a, b, nil
}

// Sum borrows x.
func Sum(x *tensor.Tensor) (sum float32) {
	values, err := tensor.Values[float32](x)
	if err != nil {
		return 0
	}
	for _, v := range values {
		sum += v
	}
	return sum
}

// Finish consumes x.
func Finish(x *tensor.Tensor) (*tensor.Tensor, error) { return eager.Relu(x.Donate()) }

type releaser interface{ Release() error }

// Drop consumes x.
func Drop[T releaser](x T) {
	if err := x.Release(); err != nil {
		panic(err)
	}
}

// Keep keeps x.
func Keep(x *tensor.Tensor) { kept = append(kept, x) }

var kept []*tensor.Tensor
