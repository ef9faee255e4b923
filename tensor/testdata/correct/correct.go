// Package correct uses views as one should; go vet must say nothing.
package correct

import "github.com/tenure-go/tenure/tensor"

type holder struct {
	view  tensor.View[float32]
	bytes tensor.Bytes
}

func local(x *tensor.Tensor) (float32, error) {
	v, err := tensor.Read[float32](x)
	if err != nil {
		return 0, err
	}
	defer v.Release()
	return v.Data[0], nil
}

func returned(x *tensor.Tensor) (tensor.View[float32], error) { return tensor.Read[float32](x) }

func passed(x *tensor.Tensor) error {
	v, err := returned(x)
	if err != nil {
		return err
	}
	ended(&v)
	return nil
}

func ended(v *tensor.View[float32]) { v.Release() }

func stored(x *tensor.Tensor, h *holder) (err error) {
	if h.view, err = tensor.Write[float32](x); err != nil {
		return err
	}
	h.view.Release()
	h.bytes, err = x.Lock()
	return err
}

func ranged(hs []holder) {
	for i := range hs {
		hs[i].view.Release()
		hs[i].bytes.Release()
	}
}

func generic[T int32 | float32](x *tensor.Tensor) (sum T, err error) {
	v, err := tensor.Read[T](x)
	if err != nil {
		return 0, err
	}
	defer v.Release()
	for _, e := range v.Data {
		sum += e
	}
	return sum, nil
}
