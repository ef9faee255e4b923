package mistakes

import (
	"kit"

	"github.com/tenure-go/tenure/tensor"
)

type state struct {
	x, y *tensor.Tensor
	name string
}

func (s *state) releaseFieldTwice() {
	s.x.Release()
	s.x.Release()
}

func (s *state) useFieldAfterRelease() {
	s.x.Release()
	use(s.x)
}

func releaseInAField() {
	x := kit.Must(kit.Make(1))
	s := &state{name: "s"}
	s.x = x
	s.x.Release()
	use(x)
}

func releaseElementTwice(list []*tensor.Tensor) {
	list[0].Release()
	list[0].Release()
}

func useElementAfterRelease(list []*tensor.Tensor) {
	for i := range list {
		list[i].Release()
		use(list[i])
	}
}

func releaseInAMap(m map[string]*tensor.Tensor) {
	x := kit.Must(kit.Make(1))
	m["x"] = x
	m["x"].Release()
	x.Release()
}

func releaseAfterAppend() {
	var list []*tensor.Tensor
	x := kit.Must(kit.Make(1))
	list = append(list, x)
	x.Release()
	use(x)
	_ = list
}

func useAfterSend(c chan *tensor.Tensor) {
	x := kit.Must(kit.Make(1))
	x.Release()
	c <- x
}

func inALiteral() {
	x := kit.Must(kit.Make(1))
	list := []*tensor.Tensor{x}
	list[0].Release()
	x.Release()
}
