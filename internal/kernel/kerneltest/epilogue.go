package kerneltest

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// BiasNames are the names of the kinds in package ref.
var BiasNames = map[gemm.BiasKind]string{
	gemm.NoBias: "", gemm.BiasScalar: "scalar", gemm.BiasRow: "row", gemm.BiasCol: "col", gemm.BiasFull: "full",
}

// Activations whose results on integers are exact.
var Activations = []gemm.Activation{{}, {Op: kernel.Relu}, {Op: kernel.LeakyRelu, A: 0.5}, {Op: kernel.Clip, A: -4, B: 6}}

// ResidualMode says where a residual comes from.
type ResidualMode int

const (
	NoResidual      ResidualMode = iota
	OwnResidual                  // in memory of its own
	InPlaceResidual              // in the result's memory
)

// RefEpilogue returns an epilogue as package ref computes it, with a factor of
// the bias.
func RefEpilogue(e gemm.Epilogue, beta float32) ref.Epilogue {
	r := ref.Epilogue{Bias: BiasNames[e.Bias], Beta: float64(beta), ActA: float64(e.Act.A), ActB: float64(e.Act.B)}
	if e.Act.Op != kernel.Identity {
		r.Act = e.Act.Op.String()
	}
	return r
}

// BiasSize returns the elements of a bias for a result of rows and columns.
func BiasSize(kind gemm.BiasKind, rows, cols int) int {
	return map[gemm.BiasKind]int{gemm.BiasScalar: 1, gemm.BiasRow: rows, gemm.BiasCol: cols, gemm.BiasFull: rows * cols}[kind]
}
