package op

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var (
	nbitsWeights = setOf(dtype.U2, dtype.I2, dtype.U4, dtype.I4, dtype.U8, dtype.I8)
	nbitsScales  = setOf(dtype.F32, dtype.F16, dtype.BF16)
)

// nbitsOps multiply with weights of few bits, which stay packed.
var nbitsOps = []*Def{{
	Name: "matmul_nbits",
	Doc: "computes x * w + bias + residual, then an activation, where (w - zero) * scale of blocks along an axis of w are the columns, or with axis 0 the rows, of a matrix; " +
		"w may have more elements along that axis than x, which do not count; without operand zero, zero_point is that of all blocks; " +
		"with accuracy_level 4 x is quantised in the same blocks, unless zeros are floats; operands x, w, scale, zero, bias, residual",
	MinArgs: 3, MaxArgs: 6,
	Attrs: []AttrDef{
		intAttr("axis", 1), intAttr("block_size", 0), intAttr("accuracy_level", 0), intAttr("zero_point", 0),
		// Those of fused_matmul.
		stringAttr("activation", ""), floatAttr("alpha", 0), floatAttr("beta", 0),
	},
	Infer: inferMatMulNBits, Alias: Aliases(Rule{Arg: 5, Kind: Accumulate}),
}}

// NBitsStep is what the block_size of matmul_nbits is a multiple of.
const NBitsStep = 16

func inferMatMulNBits(s *Sig) error {
	if err := s.wantNBitsTypes(); err != nil {
		return err
	}
	for i := 1; i < 4; i++ {
		if err := s.wantRank(i, 2, 2); err != nil {
			return err
		}
	}
	block, axis := s.Int("block_size"), int(s.Int("axis"))
	switch {
	case axis != 0 && axis != 1:
		return badShape("axis: got %d, want 0 or 1", axis)
	case block < NBitsStep || block%NBitsStep != 0 || block > 1<<16:
		return badShape("block_size: got %d, want a multiple of %d, at most %d", block, NBitsStep, 1<<16)
	}
	var buf [2]shape.Dim
	w, err := s.dimsIn(buf[:], 1)
	if err != nil {
		return err
	}
	depth, known := w[axis].Size()
	per := [2]shape.Dim{w[1-axis], w[1-axis]}
	per[axis] = shape.Unknown
	if known {
		per[axis] = shape.N(ceilBlocks(depth, int(block)))
	}
	for i := 2; i < 4; i++ {
		if err := s.wantDims(i, per[:]); err != nil {
			return err
		}
	}
	if err := s.wantVector(4, w[1-axis], "column"); err != nil {
		return err
	}
	if err := s.wantRank(0, 1, -1); err != nil {
		return err
	}
	x := s.Args[0]
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	var few [fewDims]shape.Dim
	dims := appendDims(few[:0], x.Shape)
	last := len(dims) - 1
	if k, ok := dims[last].Size(); ok && known && (k > depth || ceilBlocks(k, int(block)) != ceilBlocks(depth, int(block))) {
		return badShape("operand 1: got %s, want %d elements along axis %d, or more without another block of %d", s.Args[1], k, axis, block)
	}
	dims[last] = w[1-axis]
	if err := s.wantDims(5, dims); err != nil {
		return err
	}
	return s.give(0, x.DType, dims...)
}

// ceilBlocks is how many blocks so many elements have.
func ceilBlocks(n, block int) int { return (n + block - 1) / block }

// wantNBitsTypes checks element types, and attributes that are no sizes.
func (s *Sig) wantNBitsTypes() error {
	if err := s.want(0, setOf(dtype.F32)); err != nil {
		return err
	}
	if err := s.want(1, nbitsWeights); err != nil {
		return err
	}
	if err := s.want(2, nbitsScales); err != nil {
		return err
	}
	w := s.Args[1].DType
	if s.Has(3) && s.Args[3].DType != w && (!nbitsScales.has(s.Args[3].DType) || w.IsSigned()) {
		return badDType("operand 3: got %s, want the element type of operand 1, %s, or zeros of floats where that is unsigned", s.Args[3], s.Args[1])
	}
	for i := 4; i < 6; i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	if level := s.Int("accuracy_level"); level < 0 || level > 4 {
		return fmt.Errorf("attribute %q: got %d, want 0 to 4: %w", "accuracy_level", level, ErrUnsupported)
	}
	low, high := int64(0), int64(1)<<w.Bits()-1
	if w.IsSigned() {
		low, high = -(high+1)/2, high/2
	}
	if zero := s.Int("zero_point"); zero < low || zero > high {
		return fmt.Errorf("attribute %q: got %d, want a number of %s: %w", "zero_point", zero, w, ErrUnsupported)
	}
	_, err := s.wantOneOf("activation", "", "relu", "leaky_relu", "sigmoid", "tanh", "clip", "gelu", "gelu_tanh", "silu")
	return err
}
