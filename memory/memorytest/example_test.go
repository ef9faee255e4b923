package memorytest_test

import (
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// A test that forgets to release its buffer fails, and in a build with the tag
// invariants the report names this line.
func ExampleCheck() {
	_ = func(t *testing.T) {
		memorytest.Check(t)
		b, err := memory.Alloc(1000, memory.Scratch)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
	}
}
