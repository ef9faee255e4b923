package gemm

import (
	"math"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Activation is an elementwise function applied to a result before it is
// stored; the zero value is none.
type Activation struct {
	Op   kernel.UnaryOp
	A, B float32
}

func (a Activation) Apply(v *kernel.Variant, row []float32) {
	if a.Op != kernel.Identity {
		elementwise.UnaryRow(v, a.Op, row, row, a.A, a.B)
	}
}

// BiasKind says how a bias lies against a result of rows and columns.
type BiasKind uint8

const (
	NoBias     BiasKind = iota
	BiasScalar          // one number
	BiasRow             // one per row: the output channel of a convolution
	BiasCol             // one per column: the feature of a linear layer
	BiasFull            // a matrix of the result's shape
)

// Epilogue is what happens to a product before it leaves the cache: out =
// act(product + bias + residual). The residual is a tensor of the output's
// shape, and may be the output's very bytes.
type Epilogue struct {
	Bias     BiasKind
	Residual bool
	Act      Activation

	BiasFactor float32 // factor of the bias; Prepare sets it
}

// Rect is a rectangle of a result: rows At + i*Ld, in the residual Res +
// i*ResLD. Row and Col are its place in the whole, which the bias is indexed
// by; width is the whole's width.
type Rect struct {
	At, Ld     int
	Res, ResLD int
	Rows, Cols int
	Row, Col   int
	Width      int
}

// begin writes the addend of the product into c. It returns false if there is
// none, and the product may overwrite c: then the sums start in registers. The
// residual must enter here, since in place it is gone once the first part of
// the product is stored.
func (e *Epilogue) Begin(v *kernel.Variant, r *Rect, c, bias, residual []float32) bool {
	full := e.Bias == BiasFull
	if !full && !e.Residual {
		return false
	}
	for i := range r.Rows {
		row := c[r.At+i*r.Ld:][:r.Cols]
		if e.Residual {
			if from := residual[r.Res+i*r.ResLD:][:r.Cols]; unsafe.SliceData(from) != unsafe.SliceData(row) {
				copy(row, from)
			}
		}
		if !full {
			continue
		}
		add := bias[(r.Row+i)*r.Width+r.Col:][:r.Cols]
		switch {
		case e.Residual:
			AddScaled(v, row, add, e.BiasFactor)
		case e.BiasFactor == 1:
			copy(row, add)
		default:
			elementwise.BinaryRowVS(v, kernel.Mul, row, add, e.BiasFactor)
		}
	}
	return true
}

// fuse returns the part of an epilogue that the loops of the product do, and
// the rest: they add rows to the sums, and end with a relu.
func (e *Epilogue) fuse(v *kernel.Variant, r *Rect, c, bias, residual []float32) (from sums, left Epilogue) {
	left = *e
	plain := e.BiasFactor == 1
	switch {
	case e.Residual && e.Bias != BiasFull:
		from.from, from.ldfrom = residual[r.Res:], r.ResLD
	case e.Bias == BiasFull && plain && !e.Residual:
		from.from, from.ldfrom = bias[r.Row*r.Width+r.Col:], r.Width
	case e.Bias == BiasCol && plain:
		from.from, from.ldfrom = bias[r.Col:], 0
		left.Bias = NoBias
	case e.Begin(v, r, c, bias, residual):
		from.from, from.ldfrom = c[r.At:], r.Ld
	}
	if left.Act.Op == kernel.Relu && (left.Bias == NoBias || left.Bias == BiasFull) {
		from.relu, left.Act = true, Activation{}
	}
	return from, left
}

// at are the sums from column j on, without a place to go.
func (s sums) at(j int) sums {
	if s.from != nil {
		s.from = s.from[j:]
	}
	return s
}

// end adds the bias of a row or a column and applies the activation.
func (e *Epilogue) End(v *kernel.Variant, r *Rect, c, bias []float32) {
	if e.Act.Op == kernel.Identity && (e.Bias == NoBias || e.Bias == BiasFull) {
		return
	}
	for i := range r.Rows {
		row := c[r.At+i*r.Ld:][:r.Cols]
		switch e.Bias {
		case BiasScalar:
			elementwise.BinaryRowVS(v, kernel.Add, row, row, e.BiasFactor*bias[0])
		case BiasRow:
			elementwise.BinaryRowVS(v, kernel.Add, row, row, e.BiasFactor*bias[r.Row+i])
		case BiasCol:
			AddScaled(v, row, bias[r.Col:][:r.Cols], e.BiasFactor)
		}
		e.Act.Apply(v, row)
	}
}

func AddScaled(v *kernel.Variant, dst, src []float32, factor float32) {
	if factor == 1 {
		elementwise.BinaryRowVV(v, kernel.Add, dst, dst, src)
		return
	}
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += factor * src[i]
	}
}

// clamp returns the bounds that an activation comes to; false and no bounds if
// it does not.
func (a Activation) Clamp() (low, high float32, ok bool) {
	low, high = float32(math.Inf(-1)), float32(math.Inf(1))
	switch a.Op {
	case kernel.Identity:
	case kernel.Relu:
		low = 0
	case kernel.Clip:
		low, high = a.A, a.B
	default:
		return low, high, false
	}
	return low, high, true
}
