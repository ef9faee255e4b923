package across

import (
	"lib"

	"github.com/tenure-go/tenure/tensor"
)

func consumedElsewhere(x *tensor.Tensor) {
	y, err := lib.Normalize(x)
	if err != nil {
		return
	}
	lib.Sum(y)
	lib.Sum(x) // want `use of x after a call of Normalize, which consumes it, on line \d+`
	y.Release()
}

func declared(x *tensor.Tensor) { // want declared:`consumes 0`
	lib.Store("x", x)
	x.Release() // want `Release of x after a call of Store, which consumes it, on line \d+`
}

func onlyLookedAt() {
	x, err := tensor.Of([]float32{1}, 1) // want `x is not released on the path to the return on line \d+`
	if err != nil {
		return
	}
	lib.Sum(x)
}
