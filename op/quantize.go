package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var (
	bytes8    = setOf(dtype.I8, dtype.U8)
	quantized = bytes8 | float8&^setOf(dtype.F8E8M0) | packed | setOf(dtype.I16, dtype.U16)
	scales    = floats &^ setOf(dtype.F64)
)

// quantizeOps map floats to few bits and back. A quantised number q stands for
// (q - zero) * scale; scale and zero are one for the whole operand, one per
// index of an axis, or one per block along an axis.
var quantizeOps = []*Def{
	{
		Name: "quantize_linear", ONNX: "QuantizeLinear", Doc: "quantises x: x / scale + zero, rounded to nearest even and saturated; operands x, scale, zero",
		MinArgs: 2, MaxArgs: 3,
		Attrs: []AttrDef{intAttr("axis", 1), intAttr("block_size", 0), {Name: "output_dtype", Kind: DTypeKind}, {Name: "precision", Kind: DTypeKind}, intAttr("saturate", 1)},
		Infer: inferQuantize, Alias: NarrowTo(0),
	},
	{
		Name: "dequantize_linear", ONNX: "DequantizeLinear", Doc: "dequantises x: (x - zero) * scale; operands x, scale, zero",
		MinArgs: 2, MaxArgs: 3,
		Attrs: []AttrDef{intAttr("axis", 1), intAttr("block_size", 0), {Name: "output_dtype", Kind: DTypeKind}},
		Infer: inferDequantize, Alias: Fresh(),
	},
	{
		Name: "dynamic_quantize_linear", ONNX: "DynamicQuantizeLinear", Doc: "quantises x to u8 by a scale and a zero point that fit its range, and returns both too",
		MinArgs: 1, MaxArgs: 1, MinResults: 3, MaxResults: 3, Infer: inferDynamicQuantize, Alias: NarrowTo(0),
	},
	{
		Name: "lookup", Doc: "replaces each byte of x by the element of a table of 256 that the byte is the index of; operands x, table",
		MinArgs: 2, MaxArgs: 2, Infer: inferLookup, Alias: SameAs(0),
	},
	{
		Name: "matmul_integer", ONNX: "MatMulInteger", Doc: "computes the matrix product of a - a_zero and b - b_zero in i32; operands a, b, a_zero, b_zero",
		MinArgs: 2, MaxArgs: 4, Infer: inferMatMulInteger, Alias: Fresh(),
	},
	{
		Name: "qlinear_matmul", ONNX: "QLinearMatMul",
		Doc:     "computes the quantised matrix product of quantised a and b; operands a, b and the result's parameters, each with its scale and zero, and a bias in i32 per column",
		MinArgs: 8, MaxArgs: 9, Infer: inferQLinearMatMul, Alias: Fresh(),
	},
	{
		Name: "qlinear_add", Doc: "adds quantised a and b, with broadcasting, and quantises the sum; operands a, b and the result's parameters, each with its scale and zero",
		MinArgs: 8, MaxArgs: 8, Infer: inferQLinearBinary, Alias: SameAs(0, 3),
	},
	{
		Name: "qlinear_mul", Doc: "multiplies quantised a and b, with broadcasting, and quantises the product; operands a, b and the result's parameters, each with its scale and zero",
		MinArgs: 8, MaxArgs: 8, Infer: inferQLinearBinary, Alias: SameAs(0, 3),
	},
	{
		Name: "conv_integer", ONNX: "ConvInteger", Doc: "convolves x - x_zero with w - w_zero in i32; operands x, w, x_zero, w_zero",
		MinArgs: 2, MaxArgs: 4, Attrs: convAttrs, Infer: inferConvInteger, Alias: Fresh(),
	},
	{
		Name: "qlinear_conv", ONNX: "QLinearConv",
		Doc:     "computes the quantised convolution of quantised x and w; operands x, w and the result's parameters, each with its scale and zero, and a bias in i32",
		MinArgs: 8, MaxArgs: 9, Attrs: convAttrs, Infer: inferQLinearConv, Alias: Fresh(),
	},
}

func inferLookup(s *Sig) error {
	if err := s.wantEach(bytes8, 0, 1); err != nil {
		return err
	}
	if err := s.wantVector(1, shape.N(256), "byte"); err != nil {
		return err
	}
	s.Results[0] = Type{s.Args[1].DType, s.Args[0].Shape}
	return nil
}

func inferQuantize(s *Sig) error {
	if err := s.want(0, floats|setOf(dtype.I32)); err != nil {
		return err
	}
	if err := s.want(1, floats); err != nil {
		return err
	}
	if err := s.want(2, quantized); err != nil {
		return err
	}
	if _, err := s.wantFlag("saturate"); err != nil {
		return err
	}
	if p := s.DType("precision"); p != dtype.Invalid && !setOf(dtype.F32, dtype.F16, dtype.BF16).has(p) {
		return badDType("precision: got %s, want the type of the quotient: f32, f16 or bf16", p)
	}
	dt := s.DType("output_dtype")
	switch {
	case s.Has(2) && dt != dtype.Invalid && dt != s.Args[2].DType:
		return badDType("output_dtype: got %s, want that of the zero, %s", dt, s.Args[2])
	case s.Has(2):
		dt = s.Args[2].DType
	case dt == dtype.Invalid:
		dt = dtype.U8
	case !quantized.has(dt):
		return badDType("output_dtype: got %s, want one of %s", dt, quantized)
	}
	s.Results[0] = Type{dt, s.Args[0].Shape}
	return s.wantScales()
}

func inferDequantize(s *Sig) error {
	if err := s.want(0, quantized|setOf(dtype.I32)); err != nil {
		return err
	}
	if err := s.want(1, scales); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	dt := s.DType("output_dtype")
	switch {
	case dt == dtype.Invalid:
		dt = s.Args[1].DType
	case !scales.has(dt):
		return badDType("output_dtype: got %s, want one of %s", dt, scales)
	}
	s.Results[0] = Type{dt, s.Args[0].Shape}
	return s.wantScales()
}

// wantScales checks that scale and zero, operands 1 and 2, fit operand 0.
func (s *Sig) wantScales() error {
	_, err := s.Scales()
	return err
}

// Scaling is how the scales of a quantisation lie: Groups of them along the
// axis, each for Block elements, and where Blocked is set, others for each
// index of the other axes.
type Scaling struct {
	Axis, Block, Groups int
	Blocked             bool
}

// Scales returns how the scales of quantize_linear or dequantize_linear lie.
// Sizes count for static operands only. With one scale for all, Groups is 0.
func (s *Sig) Scales() (Scaling, error) {
	var q Scaling
	block := s.Int("block_size")
	if block < 0 || block > maxSize {
		return q, badShape("block_size: got %d, want 0 or more", block)
	}
	x, scale := s.Args[0].Shape, s.Args[1].Shape
	if zero := s.zeroShape(); zero != nil && scale != nil && !sameScales(zero, scale) {
		return q, badShape("operand 2: got %s, want the shape of operand 1, %s", s.Args[2], s.Args[1])
	}
	if scale == nil || x == nil || isOne(scale) && block == 0 {
		return q, nil
	}
	axis, err := axisOf(s.Int("axis"), x.Rank())
	if err != nil {
		return q, err
	}
	q = Scaling{Axis: axis, Block: max(1, int(block)), Blocked: block > 0}
	if !q.Blocked {
		if scale.Rank() != 1 {
			return q, badShape("operand 1: got %s, want one element, or one per index of axis %d", s.Args[1], axis)
		}
		if _, ok := unify(scale.Dim(0), x.Dim(axis)); !ok && !isSize(scale.Dim(0), 1) {
			return q, badShape("operand 1: got %s, want one element, or %s for axis %d of %s", s.Args[1], x.Dim(axis), axis, s.Args[0])
		}
		q.Groups, _ = scale.Dim(0).Size()
		return q, nil
	}
	if scale.Rank() != x.Rank() {
		return q, badShape("operand 1: got %s, want %d dimensions with block_size %d", s.Args[1], x.Rank(), block)
	}
	for i := range x.Rank() {
		want := x.Dim(i)
		if n, ok := want.Size(); i == axis && ok {
			want = shape.N((n + q.Block - 1) / q.Block)
		} else if i == axis {
			want = shape.Unknown
		}
		if _, ok := unify(scale.Dim(i), want); !ok {
			return q, badShape("operand 1: got %s, want size %s on axis %d for blocks of %d in %s", s.Args[1], want, i, q.Block, s.Args[0])
		}
	}
	q.Groups, _ = scale.Dim(axis).Size()
	return q, nil
}

func (s *Sig) zeroShape() *shape.Shape {
	if !s.Has(2) {
		return nil
	}
	return s.Args[2].Shape
}

// isOne reports whether the shape is of one element for certain.
func isOne(sh *shape.Shape) bool { return sh.IsStatic() && sh.NumElements() == 1 }

func sameScales(a, b *shape.Shape) bool {
	if isOne(a) && isOne(b) {
		return true
	}
	if a.Rank() != b.Rank() {
		return !a.IsStatic() && isOne(b) || !b.IsStatic() && isOne(a) || !a.IsStatic() && !b.IsStatic()
	}
	for i := range a.Rank() {
		if _, ok := unify(a.Dim(i), b.Dim(i)); !ok {
			return false
		}
	}
	return true
}

func inferDynamicQuantize(s *Sig) error {
	if err := s.want(0, setOf(dtype.F32)); err != nil {
		return err
	}
	s.Results[0] = Type{dtype.U8, s.Args[0].Shape}
	if err := s.give(1, dtype.F32); err != nil {
		return err
	}
	return s.give(2, dtype.U8)
}

// wantEach checks the element types of several operands.
func (s *Sig) wantEach(set dtypes, args ...int) error {
	for _, arg := range args {
		if err := s.want(arg, set); err != nil {
			return err
		}
	}
	return nil
}

func inferMatMulInteger(s *Sig) error {
	if err := s.wantEach(bytes8, 0, 1); err != nil {
		return err
	}
	for i := 2; i < 4; i++ {
		if err := s.wantLike(i, i-2); err != nil {
			return err
		}
	}
	if err := s.giveProduct(dtype.I32, 0, 1, false); err != nil {
		return err
	}
	if err := s.wantPerRow(2, 0, 2); err != nil {
		return err
	}
	return s.wantPerRow(3, 1, 1)
}

// wantPerRow checks an operand that has one element, or as many as operand x
// has on the axis that is back from its end.
func (s *Sig) wantPerRow(arg, x, back int) error {
	if !s.Has(arg) || s.Args[arg].Shape == nil || isOne(s.Args[arg].Shape) || s.Args[x].Shape == nil {
		return nil
	}
	dim := shape.N(1)
	if rank := s.Args[x].Shape.Rank(); rank >= 2 {
		dim = s.Args[x].Shape.Dim(rank - back)
	}
	if sh := s.Args[arg].Shape; sh.Rank() == 1 && isSize(sh.Dim(0), 1) {
		return nil
	}
	return s.wantVector(arg, dim, "row of a or column of b")
}

// wantQLinear checks the types of x, w and the result's zero, each with its
// scale.
func (s *Sig) wantQLinear() error {
	if err := s.wantEach(bytes8, 0, 3, 7); err != nil {
		return err
	}
	if err := s.wantEach(scales, 1, 4, 6); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	return s.wantLike(5, 3)
}

func inferQLinearMatMul(s *Sig) error {
	if err := s.wantQLinear(); err != nil {
		return err
	}
	if err := s.want(8, setOf(dtype.I32)); err != nil {
		return err
	}
	if err := s.giveProduct(s.Args[7].DType, 0, 3, false); err != nil {
		return err
	}
	for _, p := range [][3]int{{1, 0, 2}, {2, 0, 2}, {4, 3, 1}, {5, 3, 1}, {8, 3, 1}} {
		if err := s.wantPerRow(p[0], p[1], p[2]); err != nil {
			return err
		}
	}
	if err := s.wantOne(6); err != nil {
		return err
	}
	return s.wantOne(7)
}

func inferQLinearBinary(s *Sig) error {
	if err := s.wantQLinear(); err != nil {
		return err
	}
	for _, arg := range []int{1, 2, 4, 5, 6, 7} {
		if err := s.wantOne(arg); err != nil {
			return err
		}
	}
	return s.giveBroadcast(s.Args[7].DType, []Type{s.Args[0], s.Args[3]})
}

func inferConvInteger(s *Sig) error {
	if err := s.wantEach(bytes8, 0, 1); err != nil {
		return err
	}
	for i := 2; i < 4; i++ {
		if err := s.wantLike(i, i-2); err != nil {
			return err
		}
	}
	if err := s.wantOne(2); err != nil {
		return err
	}
	if err := s.giveConv(dtype.I32); err != nil {
		return err
	}
	return s.wantPerFilter(3)
}

func inferQLinearConv(s *Sig) error {
	if err := s.wantQLinear(); err != nil {
		return err
	}
	if err := s.want(8, setOf(dtype.I32)); err != nil {
		return err
	}
	for _, arg := range []int{1, 2, 6, 7} {
		if err := s.wantOne(arg); err != nil {
			return err
		}
	}
	if err := s.giveConv(s.Args[7].DType); err != nil {
		return err
	}
	if err := s.wantPerFilter(4); err != nil {
		return err
	}
	return s.wantPerFilter(5)
}

// wantPerFilter checks an operand of one element, or one per filter of w.
func (s *Sig) wantPerFilter(arg int) error {
	_, w, _ := s.convOperands()
	if !s.Has(arg) || s.Args[arg].Shape == nil || isOne(s.Args[arg].Shape) || s.Args[w].Shape == nil {
		return nil
	}
	if sh := s.Args[arg].Shape; sh.Rank() == 1 && isSize(sh.Dim(0), 1) {
		return nil
	}
	return s.wantVector(arg, s.Args[w].Shape.Dim(0), "output channel")
}

// giveConv sets result 0 to the type of a convolution.
func (s *Sig) giveConv(dt dtype.DType) error {
	_, dims, err := s.conv()
	if err != nil {
		return err
	}
	return s.giveKnown(dt, dims)
}
