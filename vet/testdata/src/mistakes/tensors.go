// Package mistakes has one mistake in each function.
package mistakes

import (
	"errors"
	"fmt"

	"kit"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func use(x *tensor.Tensor) { fmt.Println(kit.Sum(x)) }

func useAfterDonate(x *tensor.Tensor) error {
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return err
	}
	use(x)
	return y.Release()
}

func donateTwice(x *tensor.Tensor) error {
	y, err := eager.Add(x.Donate(), x.Donate())
	if err != nil {
		return err
	}
	return y.Release()
}

func releaseTwice() {
	x := kit.Must(kit.Make(3))
	use(x)
	x.Release()
	x.Release()
}

func releaseThroughAnotherName() {
	x := kit.Must(kit.Make(3))
	y := x
	y.Release()
	x.Release()
}

func useThroughAnotherName(x *tensor.Tensor) {
	y := x
	x.Release()
	use(y)
}

func releaseAfterAHelper(x *tensor.Tensor) error {
	y, err := kit.Finish(x)
	if err != nil {
		return err
	}
	x.Release()
	return y.Release()
}

func releaseAfterAGenericHelper() {
	x := kit.Must(kit.Make(3))
	kit.Drop(x)
	x.Release()
}

func leakOnAnEarlyReturn(n int) error {
	x, err := kit.Make(n)
	if err != nil {
		return err
	}
	if n > 3 {
		return errors.New("too many")
	}
	return x.Release()
}

func leakAfterACheck(n int) {
	x, err := kit.Make(n)
	kit.Check(err)
	use(x)
}

func leakAfterMust(n int) {
	x := kit.Must(kit.Make(n))
	use(x)
}

func leakOfTheSecond() error {
	a, b, err := kit.Pair()
	if err != nil {
		return err
	}
	use(b)
	return a.Release()
}

func leakOfOneResult(x *tensor.Tensor) error {
	values, indices, err := eager.TopK(x, 3)
	if err != nil {
		return err
	}
	use(indices)
	return values.Release()
}

func leakWhereTheSecondFails() error {
	a, err := kit.Make(1)
	if err != nil {
		return err
	}
	b, err := kit.Make(2)
	if err != nil {
		return err
	}
	defer b.Release()
	return a.Release()
}

func leakWithTheErrorReturned() error {
	x, err := kit.Make(1)
	fmt.Println(x)
	return err
}

func discarded() {
	_, _ = kit.Make(1)
}

func discardedAsAStatement() {
	kit.Make(1)
}

func discardedBesideAnError(x *tensor.Tensor) error {
	_, err := eager.Relu(x)
	if err != nil {
		return err
	}
	return nil
}

func madeForOneCall(y *tensor.Tensor) error {
	z, err := eager.Add(kit.Must(kit.Make(1)), y)
	if err != nil {
		return err
	}
	return z.Release()
}

func releasedInOneCase(mode int) {
	x := kit.Must(kit.Make(1))
	switch mode {
	case 1:
		x.Release()
	case 2:
		use(x)
	default:
		x.Release()
	}
}

func conditional(often bool) {
	x := kit.Must(kit.Make(1))
	if often {
		x.Release()
	}
	use(x)
	x.Release()
}

func conditionalAndLeaked(often bool) {
	x := kit.Must(kit.Make(1))
	if often {
		x.Release()
	}
}

func returnedAndDeferred() (*tensor.Tensor, error) {
	x, err := kit.Make(1)
	if err != nil {
		return nil, err
	}
	defer x.Release()
	return x, nil
}

func nilTestTheWrongWay() error {
	x, err := kit.Make(1)
	if x == nil {
		return x.Release()
	}
	return err
}
