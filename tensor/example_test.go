package tensor_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/tenure-go/tenure/tensor"
)

func Example() {
	x, err := tensor.Of([]float32{1, -2, 3, -4, 5, -6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	y, err := x.Transpose() // shares the bytes
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	fmt.Println(x.Holders(), "holders, writable:", x.IsExclusive())
	if err := errors.Join(x.Release(), y.Release()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// f32[3,2]
	// [[ 1. -4.]
	//  [-2.  5.]
	//  [ 3. -6.]]
	// 2 holders, writable: false
}

func ExampleRead() {
	x, err := tensor.Of([]float32{1, 2, 3}, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	v, err := tensor.Read[float32](x)
	if err != nil {
		log.Fatal(err)
	}
	defer v.Release()
	fmt.Println(v.Data)
	// Output: [1 2 3]
}

func ExampleWrite() {
	x, err := tensor.Of([]int64{1, 2, 3}, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	v, err := tensor.Write[int64](x)
	if err != nil {
		log.Fatal(err)
	}
	v.Data[0] = 10
	_, err = tensor.Read[int64](x)
	fmt.Println(err, errors.Is(err, tensor.ErrWriting))
	v.Release()
	fmt.Println(x)
	// Output:
	// read: i64[3] is being written true
	// i64[3] [10  2  3]
}

func ExampleTensor_Index() {
	batch, err := tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer batch.Release()
	for i := range batch.Shape().Size(0) {
		image, err := batch.Index(i)
		if err != nil {
			log.Fatal(err)
		}
		corner, err := tensor.At[float32](image, -1, -1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(image.Shape(), corner)
		image.Release()
	}
	// Output:
	// [2,2] 4
	// [2,2] 8
}

// Results go into the caller's own slice.
func ExampleWrapWritable() {
	data := make([]float32, 3)
	x, err := tensor.WrapWritable(data, 3)
	if err != nil {
		log.Fatal(err)
	}
	w, err := tensor.Write[float32](x) // as an output of a run would: see tenure.Into
	if err != nil {
		log.Fatal(err)
	}
	copy(w.Data, []float32{1, 2, 3})
	w.Release()
	if err := x.Release(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(data) // the caller's again
	// Output: [1 2 3]
}

func ExampleNested() {
	x, err := tensor.FromNested([][]float32{{1, 2, 3}, {4, 5, 6}})
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	transposed, err := x.Transpose()
	if err != nil {
		log.Fatal(err)
	}
	defer transposed.Release()
	rows, err := tensor.Nested[[][]float32](transposed)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows)
	// Output: [[1 4] [2 5] [3 6]]
}

func ExampleTensor_Format() {
	x, err := tensor.Of([]float32{1. / 3, 2. / 3}, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	fmt.Printf("%v\n%.2f\n", x, x)
	// Output:
	// f32[2] [0.333333 0.666667]
	// f32[2] [0.33 0.67]
}

// double is an operation that writes into its operand where it may.
func double(x tensor.Operand) (*tensor.Tensor, error) {
	taken, err := tensor.Take("double", x)
	if err != nil {
		return nil, err
	}
	defer taken.Rollback()
	if !taken.InPlace(0) {
		return nil, errors.New("double: this example knows only the way in place")
	}
	y, err := taken.Keep(0, taken.Tensor(0).DType(), taken.Tensor(0).Layout())
	if err != nil {
		return nil, err
	}
	data, _ := taken.Bytes(0)
	for i := range data {
		data[i] *= 2
	}
	taken.Commit()
	return y, nil
}

func ExampleTake() {
	x, err := tensor.Of([]uint8{1, 2, 3}, 3)
	if err != nil {
		log.Fatal(err)
	}
	y, err := double(x.Donate())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	err = x.Release() //tenure:ignore this shows the error: "release: u8[3] already donated to double"
	fmt.Println(errors.Is(err, tensor.ErrDonated))
	if err := y.Release(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// u8[3] [2 4 6]
	// true
}

// Strings are bytes of one width, with zeros behind the shorter ones.
func ExampleOfStrings() {
	x, err := tensor.OfStrings([]string{"one", "three"}, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	list, err := tensor.Strings(x)
	fmt.Printf("%q in %s%s, %v\n", list, x.DType(), x.Shape(), err)
	// Output: ["one" "three"] in u8[2,5], <nil>
}
