// Package copied copies views in every way that there is; go vet must find each.
package copied

import "github.com/tenure-go/tenure/tensor"

type holder struct{ view tensor.View[float32] }

func assigned(x *tensor.Tensor) {
	a, _ := tensor.Read[float32](x)
	b := a // copied
	a.Release()
	b.Release()
}

func returned(x *tensor.Tensor) tensor.View[float32] {
	a, _ := tensor.Write[float32](x)
	return a // copied
}

func passed(x *tensor.Tensor) {
	a, _ := tensor.Read[float32](x)
	ended(a) // copied
}

func ended(v tensor.View[float32]) { v.Release() } // copied

func stored(x *tensor.Tensor, h *holder) {
	a, _ := tensor.Read[float32](x)
	h.view = a // copied
}

func ranged(hs []holder) {
	for _, h := range hs { // copied
		h.view.Release()
	}
}

func bytes(x *tensor.Tensor) {
	a, _ := x.Use()
	b := a // copied
	b.Release()
	w, _ := x.Lock()
	var c tensor.Bytes
	c = w // copied
	c.Release()
}
