package kernel

import (
	"math"
	"unsafe"
)

// Activation is an elementwise function applied to a result before it is stored; the zero value is none.
type Activation struct {
	Op   UnaryOp
	A, B float32
}

func (a Activation) apply(v *Variant, row []float32) {
	if a.Op != Identity {
		unaryRow(v, a.Op, row, row, a.A, a.B)
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

// Epilogue is what happens to a product before it leaves the cache: out = act(product + bias + residual). The residual is a tensor of
// the output's shape, and may be the output's very bytes.
type Epilogue struct {
	Bias     BiasKind
	Residual bool
	Act      Activation

	beta float32 // factor of the bias
}

// rect is a rectangle of a result: rows at + i*ld, in the residual res + i*resLD. row and col are its place in the whole, which the bias
// is indexed by; width is the whole's width.
type rect struct {
	at, ld     int
	res, resLD int
	rows, cols int
	row, col   int
	width      int
}

// begin puts into c what the product is added to. It returns false if that is nothing, and the product may overwrite c: then the sums
// start in registers. The residual must enter here, since in place it is gone once the first part of the product is stored.
func (e *Epilogue) begin(v *Variant, r *rect, c, bias, residual []float32) bool {
	full := e.Bias == BiasFull
	if !full && !e.Residual {
		return false
	}
	for i := range r.rows {
		row := c[r.at+i*r.ld:][:r.cols]
		if e.Residual {
			if from := residual[r.res+i*r.resLD:][:r.cols]; unsafe.SliceData(from) != unsafe.SliceData(row) {
				copy(row, from)
			}
		}
		if !full {
			continue
		}
		add := bias[(r.row+i)*r.width+r.col:][:r.cols]
		switch {
		case e.Residual:
			addScaled(v, row, add, e.beta)
		case e.beta == 1:
			copy(row, add)
		default:
			binaryRowVS(v, Mul, row, add, e.beta)
		}
	}
	return true
}

// fuse says what the loops that multiply do of an epilogue, and what is left of it: they add rows to the sums, and end with a relu.
func (e *Epilogue) fuse(v *Variant, r *rect, c, bias, residual []float32) (from sums, left Epilogue) {
	left = *e
	plain := e.beta == 1
	switch {
	case e.Residual && e.Bias != BiasFull:
		from.from, from.ldfrom = residual[r.res:], r.resLD
	case e.Bias == BiasFull && plain && !e.Residual:
		from.from, from.ldfrom = bias[r.row*r.width+r.col:], r.width
	case e.Bias == BiasCol && plain:
		from.from, from.ldfrom = bias[r.col:], 0
		left.Bias = NoBias
	case e.begin(v, r, c, bias, residual):
		from.from, from.ldfrom = c[r.at:], r.ld
	}
	if left.Act.Op == Relu && (left.Bias == NoBias || left.Bias == BiasFull) {
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
func (e *Epilogue) end(v *Variant, r *rect, c, bias []float32) {
	if e.Act.Op == Identity && (e.Bias == NoBias || e.Bias == BiasFull) {
		return
	}
	for i := range r.rows {
		row := c[r.at+i*r.ld:][:r.cols]
		switch e.Bias {
		case BiasScalar:
			binaryRowVS(v, Add, row, row, e.beta*bias[0])
		case BiasRow:
			binaryRowVS(v, Add, row, row, e.beta*bias[r.row+i])
		case BiasCol:
			addScaled(v, row, bias[r.col:][:r.cols], e.beta)
		}
		e.Act.apply(v, row)
	}
}

func addScaled(v *Variant, dst, src []float32, factor float32) {
	if factor == 1 {
		binaryRowVV(v, Add, dst, dst, src)
		return
	}
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += factor * src[i]
	}
}

// clamp gives the bounds that an activation comes to; false and no bounds if it does not.
func (a Activation) clamp() (low, high float32, ok bool) {
	low, high = float32(math.Inf(-1)), float32(math.Inf(1))
	switch a.Op {
	case Identity:
	case Relu:
		low = 0
	case Clip:
		low, high = a.A, a.B
	default:
		return low, high, false
	}
	return low, high, true
}
