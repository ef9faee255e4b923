package mistakes

import (
	"context"

	"kit"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func leakInALoop() {
	for range 10 {
		x := kit.Must(kit.Make(1))
		use(x)
	}
}

func leakByContinue(list []int) error {
	for _, n := range list {
		x, err := kit.Make(n)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := x.Release(); err != nil {
			return err
		}
	}
	return nil
}

func leakByBreak(list []int) {
outer:
	for {
		for _, n := range list {
			x := kit.Must(kit.Make(n))
			if n > 3 {
				break outer
			}
			x.Release()
		}
	}
}

func donateInALoop(x *tensor.Tensor) error {
	for range 3 {
		y, err := eager.Relu(x.Donate())
		if err != nil {
			return err
		}
		y.Release()
	}
	return nil
}

func chainThatLosesTheLast() error {
	x := kit.Must(kit.Make(1))
	for range 3 {
		y := kit.Must(eager.Relu(x))
		x = y
	}
	return x.Release()
}

func releasedTwiceInALoop(list []*tensor.Tensor) {
	for _, x := range list {
		x.Release()
		use(x)
	}
}

func leakInASelect(ctx context.Context, ready chan bool) {
	x := kit.Must(kit.Make(1))
	select {
	case <-ctx.Done():
		return
	case <-ready:
	}
	x.Release()
}
