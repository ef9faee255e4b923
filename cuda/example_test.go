package cuda_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/tensor"
)

// The computation is submitted, not waited for: only the copy to the host
// waits. It needs a device, so it does not run as a test.
func Example() {
	ctx := context.Background()
	c, err := cuda.Open()
	if err != nil {
		fmt.Println(err) // one line: no driver, one that is too old, or no device
		return
	}
	d, err := c.Device(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	x, err := tensor.Of([]float32{1, 2, 3}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Release()
	far, err := tensor.To(ctx, x, d.Memory())
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := d.Main().Add(far, far)
	far.Release() // before the device has read it: its bytes wait for that
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sum.Release()
	back, err := tensor.To(ctx, sum, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer back.Release()
	fmt.Println(back)
}
