//go:build !amd64

package kernel

import "github.com/tenure-go/tenure/dtype"

// machineVariants are those that this architecture adds to the portable one.
func machineVariants() []variant { return nil }

func widenVectors(dtype.DType, []float32, []uint16) int { return 0 }

func narrowVectors(dtype.DType, []uint16, []float32) int { return 0 }
