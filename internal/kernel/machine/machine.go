// Package machine knows the variants of the kernels that the machine can run,
// and picks the one that a process computes with. Variants are fixed when the
// process starts and never change; all functions may be called by any number of
// goroutines.
//
//	v := machine.Best()
//	elementwise.UnaryF32(v, kernel.Exp, dst, src, 0, 0)
package machine

import (
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/x86"
)

var variants = append([]*kernel.Variant{kernel.Portable}, x86.Variants()...)

var best = variants[len(variants)-1]

// Best returns the fastest variant that the processor has and TENURE_CPU allows
// (see internal/cpu).
func Best() *kernel.Variant { return best }

// Variants returns all of them, slowest first.
func Variants() []*kernel.Variant { return slices.Clone(variants) }
