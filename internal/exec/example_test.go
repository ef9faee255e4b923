package exec_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// A program in text is compiled and run: its two calls share one buffer.
func Example() {
	p, err := ir.Parse(`func @main(%x: f32[4]) -> (f32[4]) {
		%a = relu(%x)
		%b = neg(donate %a)
		return %b
	}`, op.Builtin())
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := exec.Compile(context.Background(), p, ir.WeightMap{}, exec.Options{Threads: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var slot exec.Slot
	defer slot.Release()
	pool := compute.NewPool(1)
	defer pool.Close()
	r, err := slot.Runner(e)
	if err != nil {
		fmt.Println(err)
		return
	}
	input, output := []byte{0, 0, 128, 191, 0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 0, 0}, make([]byte, 16) // -1, 1, 2, 0
	if err := r.Run(pool, nil, [][]byte{input}, [][]byte{output}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(e.ArenaBytes, "bytes of arena,", output[7], output[11]) // the sign bits of -1 and -2
	// Output: 0 bytes of arena, 191 192
}
