package bad

import (
	"errors"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func useAfterDonate(x *tensor.Tensor) error {
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return err
	}
	defer y.Release()
	_, err = tensor.Values[float32](x) // want `use of x after Donate on line \d+`
	return err
}

func useBeforeTheErrorIsKnown(x *tensor.Tensor) error {
	y, err := eager.Relu(x.Reuse())
	z, err2 := x.Reshape(1) // want `use of x after Reuse on line \d+`
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return errors.Join(y.Release(), z.Release())
}

func donateTwice(x *tensor.Tensor) { // want donateTwice:`consumes 0`
	a, _ := eager.Relu(x.Donate())
	b, _ := eager.Relu(x.Donate()) // want `Donate of x after Donate on line \d+`
	a.Release()
	b.Release()
}

func inOneCall(x *tensor.Tensor) { // want inOneCall:`consumes 0`
	a, _ := eager.Add(x.Donate(), x) // want `use of x after Donate on line \d+`
	a.Release()
}

func donateInALoop(x *tensor.Tensor) {
	for range 3 {
		y, err := eager.Relu(x.Donate()) // want `Donate of x after Donate on line \d+`
		if err != nil {
			return
		}
		y.Release()
	}
}

func onOneBranch(x *tensor.Tensor, often bool) {
	if often {
		y, err := eager.Relu(x.Donate())
		if err != nil {
			return
		}
		y.Release()
	}
	z, err := eager.Relu(x) // want `use of x after Donate on line \d+`
	if err == nil {
		z.Release()
	}
}

func releaseTwice(x *tensor.Tensor) { // want releaseTwice:`consumes 0`
	x.Release()
	x.Release() // want `Release of x after Release on line \d+`
}

func releaseAfterDonate(x *tensor.Tensor) {
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return
	}
	y.Release()
	x.Release() // want `Release of x after Donate on line \d+`
}

func useAfterRelease(x *tensor.Tensor) []int { // want useAfterRelease:`consumes 0`
	x.Release()
	_ = x.Shape()
	y, err := x.Reshape(1) // want `use of x after Release on line \d+`
	if err != nil {
		return nil
	}
	defer y.Release()
	return y.Shape()
}

func forgotten() error {
	x, err := tensor.Of([]float32{1}, 1) // want `x is not released on the path to the return on line \d+`
	if err != nil {
		return err
	}
	if len(x.Shape()) == 0 {
		return x.Release()
	}
	x.IsExclusive()
	return nil
}

func forgottenOnTheWay() error {
	x, err := tensor.Of([]float32{1}, 1) // want `x is not released on the path to the return on line \d+`
	if err != nil {
		return err
	}
	y, err := eager.Relu(x)
	if err != nil {
		return err // x is still here
	}
	return errors.Join(x.Release(), y.Release())
}

func aliveAgain() error {
	x, err := tensor.Of([]float32{1}, 1) // want `x is not released on the path to the return on line \d+`
	if err != nil {
		return err
	}
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return err // a donation that failed leaves x alive
	}
	return y.Release()
}

func overwritten() {
	x, _ := tensor.Of([]float32{1}, 1)
	x, _ = tensor.Of([]float32{2}, 1) // want `x is assigned again before the tensor of line \d+ is released`
	x.Release()
}

func dataAfterRelease(x *tensor.Tensor) float32 { // want dataAfterRelease:`borrows 0`
	v, err := tensor.Read[float32](x)
	if err != nil {
		return 0
	}
	data := v.Data[1:]
	v.Release()
	if len(v.Data) > 0 { // want `use of v.Data after Release of v on line \d+`
		return 1
	}
	return data[0] // want `use of data after Release of v on line \d+`
}

func dataReturned(x *tensor.Tensor) []float32 { // want dataReturned:`borrows 0`
	v, err := tensor.Read[float32](x)
	if err != nil {
		return nil
	}
	defer v.Release()
	return v.Data // want `data of v is returned, but its deferred Release ends it`
}

type holder struct{ data []float32 }

func dataStored(x *tensor.Tensor, h *holder) { // want dataStored:`borrows 0`
	v, err := tensor.Read[float32](x)
	if err != nil {
		return
	}
	defer v.Release()
	h.data = v.Data // want `data of v is stored, but its deferred Release ends it`
}

// take gives its parameter up.
func take(x *tensor.Tensor) (*tensor.Tensor, error) { return eager.Relu(x.Donate()) } // want take:`consumes 0, gives`

func useAfterTake(x *tensor.Tensor) { // want useAfterTake:`consumes 0`
	y, err := take(x)
	if err != nil {
		x.Release()
		return
	}
	y.Release()
	x.Release() // want `Release of x after a call of take, which consumes it, on line \d+`
}

func forgottenFromTake(x *tensor.Tensor) {
	y, err := take(x) // want `y is not released on the path to the return on line \d+`
	if err != nil {
		return
	}
	_ = y.Shape()
}

// Made on one of several ways, and forgotten where a later call fails.
func oneOfSeveral(x *tensor.Tensor, double bool) error { // want oneOfSeveral:`borrows 0`
	var y *tensor.Tensor
	var err error
	switch {
	case double:
		y, err = eager.Add(x, x) // want `y is not released on the path to the return on line \d+`
	default:
		y, err = eager.Relu(x)
	}
	if err != nil {
		return err
	}
	v, err := tensor.Read[float32](y)
	if err != nil {
		return err
	}
	v.Release()
	return y.Release()
}
