package compute_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// A call is bound once and run as often as one likes, here in place: relu may
// overwrite its operand.
func Example() {
	vector := op.Type{DType: dtype.F32, Shape: shape.MustOf(4)}
	sig := &op.Sig{Def: op.Builtin().Lookup("relu"), Args: []op.Type{vector}, Results: make([]op.Type, 1)}
	if err := op.InferTypes(sig); err != nil {
		log.Fatal(err)
	}
	call := &op.Call{Sig: sig, In: []op.Arg{{Type: vector}}, Out: []op.Arg{{Type: sig.Results[0]}}}
	task, err := compute.Bind(call)
	if err != nil {
		log.Fatal(err)
	}
	pool := compute.NewPool(2)
	defer pool.Close()

	data := make([]byte, 16)
	for i, v := range []float32{-1, 2, -3, 4} {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
	call.In[0].Data, call.Out[0].Data = data, data
	if err := pool.Run(nil, task, make([]byte, task.Scratch*pool.Threads())); err != nil {
		log.Fatal(err)
	}
	for i := range 4 {
		fmt.Print(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])), " ")
	}
	// Output: 0 2 0 4
}
