//go:build !unix

package kerneltest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
)

// fencedPages returns memory that ends anywhere.
func fencedPages(_ testing.TB, n int) []byte {
	return kernel.BytesOf(make([]float32, (n+3)/4+guardBytes/4))
}

func freePages(testing.TB, []byte) {}
