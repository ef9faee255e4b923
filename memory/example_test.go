package memory_test

import (
	"errors"
	"expvar"
	"fmt"

	"github.com/tenure-go/tenure/memory"
)

func ExampleAlloc() {
	b, err := memory.Alloc(1<<20, memory.Scratch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(b.Bytes()), "bytes,", b.Holders(), "holder, exclusive:", b.IsExclusive())
	if err := b.Release(); err != nil {
		fmt.Println(err)
	}
	// Output: 1048576 bytes, 1 holder, exclusive: true
}

func ExampleSetLimit() {
	defer memory.SetLimit(memory.SetLimit(memory.Stats().Total.Current + 1000))
	_, err := memory.Alloc(2000, memory.Activations)
	fmt.Println(errors.Is(err, memory.ErrLimit))
	// Output: true
}

func ExampleVar() {
	expvar.Publish("tenure.memory", memory.Var{})
}
