package main

import (
	"context"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func Example() {
	if err := run(); err != nil {
		panic(err)
	}
	// Output:
	// 100 tokens, cache grown 3 times to 65536 bytes
	// in the steps: 0 bytes copied, 0 bytes of tensors allocated
}

func open(t *testing.T, capacity int) *decoder {
	d, err := newDecoder(capacity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func address(x *tensor.Tensor) *byte {
	data, _ := x.UnsafeBytes()
	return &data[0]
}

// TestCacheStays holds the cache to its bytes in every step that does not grow
// it, and the tokens to those of a cache that never grows.
func TestCacheStays(t *testing.T) {
	memorytest.Check(t)
	large, d := open(t, 128), open(t, 16)
	want, err := large.generate(context.Background(), 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if large.grown != 0 || large.copied != 0 || large.allocated != 0 {
		t.Errorf("large cache: got it grown %d times, %d bytes copied, %d allocated, want none", large.grown, large.copied, large.allocated)
	}
	token := int64(1)
	var got []int64
	for range want {
		grown, keys, values := d.grown, address(d.keys), address(d.values)
		next, err := d.generate(context.Background(), token, 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.grown == grown && (address(d.keys) != keys || address(d.values) != values) {
			t.Fatalf("step %d: the cache has moved", len(got))
		}
		token = next[0]
		got = append(got, token)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got tokens %v, want those of a cache that never grows, %v", got, want)
	}
	different := slices.Compact(slices.Sorted(slices.Values(want)))
	if len(different) < 5 {
		t.Errorf("got tokens %v alone, want some variety: else they prove nothing", different)
	}
}
