package main

import (
	"context"
	"fmt"
	"image"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestSamples classifies every sample as the digit that it shows.
func TestSamples(t *testing.T) {
	memorytest.Check(t)
	r, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for want := range 10 {
		img, err := open(filepath.Join("samples", fmt.Sprintf("%d.png", want)))
		if err != nil {
			t.Fatal(err)
		}
		got, p, err := r.read(context.Background(), img)
		if err != nil {
			t.Fatal(err)
		}
		if got != want || p < 0.9 {
			t.Errorf("sample %d: got %d with probability %.3f, want %d with at least 0.9", want, got, p, want)
		}
	}
}

// TestSmallPicture reads a picture of fewer pixels than the model's input.
func TestSmallPicture(t *testing.T) {
	if got := pixels(image.NewGray(image.Rect(5, 5, 8, 8))); len(got) != side*side {
		t.Errorf("got %d pixels, want %d", len(got), side*side)
	}
}

func Example() {
	if err := run([]string{"samples/3.png", "samples/8.png"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// samples/3.png: 3 (100.0%)
	// samples/8.png: 8 (99.5%)
}
