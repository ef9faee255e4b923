package mistakes

import (
	"kit"

	"github.com/tenure-go/tenure/tensor"
)

func readNeverReleased(x *tensor.Tensor) (float32, error) {
	v, err := tensor.Read[float32](x)
	if err != nil {
		return 0, err
	}
	return v.Data[0], nil
}

func writeNeverReleased(x *tensor.Tensor) error {
	v, err := tensor.Write[float32](x)
	if err != nil {
		return err
	}
	v.Data[0] = 1
	return nil
}

func viewLeakedOnOnePath(x *tensor.Tensor) float32 {
	v := kit.Must(tensor.Read[float32](x))
	if len(v.Data) == 0 {
		return 0
	}
	defer v.Release()
	return v.Data[0]
}

func bytesNeverReleased(x *tensor.Tensor) int {
	b, err := x.Use()
	if err != nil {
		return 0
	}
	return len(b.Data)
}

func dataOfNothing(x *tensor.Tensor) float32 {
	return kit.Must(tensor.Read[float32](x)).Data[0]
}

func dataAfterRelease(x *tensor.Tensor) float32 {
	v := kit.Must(tensor.Write[float32](x))
	data := v.Data
	v.Release()
	return data[0]
}

func dataReturned(x *tensor.Tensor) []float32 {
	v := kit.Must(tensor.Read[float32](x))
	defer v.Release()
	return v.Data[1:]
}

func dataStored(x *tensor.Tensor, to *struct{ data []float32 }) {
	v := kit.Must(tensor.Write[float32](x))
	defer v.Release()
	to.data = v.Data
}
