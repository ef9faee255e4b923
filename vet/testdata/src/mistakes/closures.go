package mistakes

import (
	"fmt"
	"testing"

	"kit"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func useAfterAReleaseInAClosure() {
	x := kit.Must(kit.Make(1))
	drop := func() { x.Release() }
	drop()
	use(x)
}

func releaseTwiceByAClosure() {
	x := kit.Must(kit.Make(1))
	drop := func() { x.Release() }
	drop()
	x.Release()
}

func closureCalledAtOnce(x *tensor.Tensor) {
	func() { x.Release() }()
	use(x)
}

func twiceInAClosure(x *tensor.Tensor) func() {
	return func() {
		x.Release()
		x.Release()
	}
}

func closureThatOnlyLooks() {
	x := kit.Must(kit.Make(1))
	defer func() { fmt.Println(x.Shape()) }()
	use(x)
}

func closureNeverCalledOnOnePath(n int) {
	x := kit.Must(kit.Make(n))
	drop := func() { x.Release() }
	if n > 3 {
		return
	}
	drop()
}

func methodValue() {
	x := kit.Must(kit.Make(1))
	release := x.Release
	release()
	use(x)
}

func TestCleanupAndDonation(t *testing.T) {
	x := kit.Must(kit.Make(1))
	t.Cleanup(func() { x.Release() })
	y, err := eager.Relu(x.Donate())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.Release() })
	use(x)
}

func TestLeak(t *testing.T) {
	x, err := kit.Make(1)
	if err != nil {
		t.Fatal(err)
	}
	if kit.Sum(x) != 0 {
		t.Errorf("got %v", x)
	}
}

func leakInAClosure() func() {
	return func() {
		x := kit.Must(kit.Make(1))
		use(x)
	}
}
