//go:build !amd64

package x86

import "github.com/tenure-go/tenure/internal/kernel"

// Variants returns those that this process may run: none.
func Variants() []*kernel.Variant { return nil }
