package good

import (
	"errors"
	"fmt"
	"log"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func chain() error {
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		return err
	}
	for range 10 {
		y, err := eager.Relu(x.Donate())
		if err != nil {
			x.Release()
			return err
		}
		x = y
	}
	return x.Release()
}

func sameName() (*tensor.Tensor, error) { // want sameName:`gives`
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		return nil, err
	}
	defer x.Release()
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return nil, err
	}
	fmt.Println(x, x.Alive(), x.Shape())
	return y, nil
}

func fatal() {
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	x, err = eager.Relu(x.Donate())
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
}

func eitherWay(inPlace bool) error {
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		return err
	}
	defer x.Release()
	var y *tensor.Tensor
	if inPlace {
		y, err = eager.Relu(x.Donate())
	} else {
		y, err = eager.Relu(x)
	}
	if err != nil {
		return err
	}
	return y.Release()
}

func scoped(x *tensor.Tensor) (*tensor.Tensor, error) { // want scoped:`consumes 0, gives`
	s := eager.NewScope()
	defer s.Close()
	a := s.Relu(x.Donate())
	b := s.Add(a, a)
	y := s.Keep(s.Relu(b.Donate()))
	return y, s.Err()
}

func adopted() {
	s := eager.NewScope()
	defer s.Close()
	x := s.Adopt(tensor.Of([]float32{1}, 1))
	s.Relu(x.Donate())
}

type model struct{ weight *tensor.Tensor }

func (m *model) set() error {
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		return err
	}
	m.weight = x
	return nil
}

func (m *model) get() *tensor.Tensor { return m.weight }

func borrowed(m *model) error {
	w := m.get()
	y, err := eager.Relu(w)
	if err != nil {
		return err
	}
	return y.Release()
}

func list() ([]*tensor.Tensor, error) {
	var xs []*tensor.Tensor
	for range 3 {
		x, err := tensor.Of([]float32{1}, 1)
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
	}
	return xs, nil
}

func closure() {
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		return
	}
	defer func() { x.Release() }()
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return
	}
	y.Release()
}

func assign(y *tensor.Tensor) error { // want assign:`borrows 0`
	x, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		return err
	}
	if err := eager.AddAssign(&x, y); err != nil {
		x.Release()
		return err
	}
	return x.Release()
}

func read(x *tensor.Tensor) (float32, error) { // want read:`borrows 0`
	v, err := tensor.Read[float32](x)
	if err != nil {
		return 0, err
	}
	defer v.Release()
	sum := float32(0)
	for _, e := range v.Data {
		sum += e
	}
	return sum + v.Data[0], nil
}

func again(x *tensor.Tensor) error { // want again:`borrows 0`
	v, err := tensor.Read[float32](x)
	if err != nil {
		return err
	}
	v.Release()
	v, err = tensor.Read[float32](x)
	if err != nil {
		return err
	}
	fmt.Println(v.Data)
	v.Release()
	return nil
}

func helper() error {
	x, err := sameName()
	if err != nil {
		return err
	}
	if _, err := read(x); err != nil {
		x.Release()
		return err
	}
	return x.Release()
}

func expectsARefusal(x *tensor.Tensor) error { // want expectsARefusal:`consumes 0`
	_, err := eager.Relu(x.Donate())
	if errors.Is(err, errShared) {
		return x.Release()
	}
	return err
}

func onPurpose(x *tensor.Tensor) error { // want onPurpose:`consumes 0`
	y, err := eager.Relu(x.Donate())
	if err != nil {
		return err
	}
	y.Release()
	_, err = eager.Relu(x) //tenure:ignore the error is what this shows
	fmt.Println(err)
	return nil
}

func twoWays(x *tensor.Tensor, copied bool) error { // want twoWays:`borrows 0`
	var y *tensor.Tensor
	var err error
	if copied {
		y, err = tensor.Of([]float32{1}, 1)
	} else {
		y, err = x.Reshape(1)
	}
	if err != nil {
		return err
	}
	return y.Release()
}

var errShared = errors.New("shared")
