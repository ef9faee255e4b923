package memory_test

import (
	"errors"
	"expvar"
	"fmt"
	"log"

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

// Small mappings that came back wait a moment for the next of their size, and
// are counted.
func ExampleTrim() {
	memory.Trim()
	b, err := memory.Process(memory.Scratch).Alloc(1 << 20) // not zeroed: for bytes that are all written
	if err != nil {
		log.Fatal(err)
	}
	if err := b.Release(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(memory.Stats().Cached >= 1<<20, memory.Trim() >= 1<<20, memory.Stats().Cached)
	// Output: true true 0
}

// An arena serves the same sizes from what came back.
func ExampleArena() {
	arena, err := memory.NewArena(1<<20, memory.Activations)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		b, err := arena.Alloc(1000)
		if err != nil {
			log.Fatal(err)
		}
		if err := b.Release(); err != nil {
			log.Fatal(err)
		}
	}
	s := arena.Stats()
	fmt.Printf("%d taken, %d reused, %d bytes wait\n", s.Fresh, s.Reused, s.FreeListed)
	if err := arena.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: 1 taken, 2 reused, 1024 bytes wait
}
