package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var linearOps = []*Def{
	{
		Name: "matmul", ONNX: "MatMul", Doc: "computes the matrix product as numpy does: the last two axes are matrices, the axes before them broadcast",
		MinArgs: 2, MaxArgs: 2, Infer: inferMatMul, Alias: Fresh(),
	},
	{
		Name: "gemm", ONNX: "Gemm", Doc: "computes alpha * a * b + beta * c of matrices, without c if beta is 0; transA and transB transpose a and b first",
		MinArgs: 2, MaxArgs: 3,
		Attrs: []AttrDef{floatAttr("alpha", 1), floatAttr("beta", 1), intAttr("transA", 0), intAttr("transB", 0)},
		Infer: inferGemm, Alias: Aliases(Rule{Arg: 2, Kind: Accumulate}),
	},
	{
		Name: "det", ONNX: "Det", Doc: "computes the determinants of the square matrices in the last two axes",
		MinArgs: 1, MaxArgs: 1, Infer: inferDet, Alias: Fresh(),
	},
	{
		Name: "inverse", Doc: "computes the inverses of the square matrices in the last two axes; of one that has none, elements are infinite or NaN",
		MinArgs: 1, MaxArgs: 1, Infer: inferInverse, Alias: SameAs(0),
	},
}

func inferMatMul(s *Sig) error {
	if err := s.want(0, wide); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	return s.giveProduct(s.Args[0].DType, 0, 1, false)
}

// giveProduct sets result 0 to the matrix product of two operands, the right
// one with its last two axes swapped first if swap.
func (s *Sig) giveProduct(dt dtype.DType, left, right int, swap bool) error {
	a, b := s.Args[left], s.Args[right]
	for _, i := range [2]int{left, right} {
		if err := s.wantRank(i, 1, -1); err != nil {
			return err
		}
	}
	if a.Shape == nil || b.Shape == nil {
		return s.giveAny(0, dt)
	}
	if n := a.Shape.Rank(); a.IsStatic() && b.IsStatic() && n > 1 && b.Shape.Rank() > 1 {
		return s.giveStaticProduct(dt, a, b, swap)
	}
	// A vector is a matrix of one row or one column, whose axis the result
	// drops.
	var bufA, bufB, bufOut [fewDims]shape.Dim
	row, col := a.Shape.Rank() == 1, b.Shape.Rank() == 1
	x, y := bufA[:0], bufB[:0]
	if row {
		x = append(x, shape.N(1))
	}
	x, y = appendDims(x, a.Shape), appendDims(y, b.Shape)
	if col {
		y = append(y, shape.N(1))
	}
	m, n := len(x)-2, len(y)-2
	if swap {
		y[n], y[n+1] = y[n+1], y[n]
	}
	if _, ok := unify(x[m+1], y[n]); !ok {
		return badShape("got %s and %s, want equal inner sizes instead of %s and %s", a, b, x[m+1], y[n])
	}
	outerA, err := shape.FromDims(x[:m]...)
	if err != nil {
		return err
	}
	outerB, err := shape.FromDims(y[:n]...)
	if err != nil {
		return err
	}
	batch, err := shape.Broadcast(outerA, outerB)
	if err != nil {
		return badShape("got %s and %s, want axes before the last two that broadcast", a, b)
	}
	dims := appendDims(bufOut[:0], batch)
	if !row {
		dims = append(dims, x[m])
	}
	if !col {
		dims = append(dims, y[n+1])
	}
	return s.give(0, dt, dims...)
}

// giveStaticProduct is giveProduct for operands that have sizes and are
// matrices, or several.
func (s *Sig) giveStaticProduct(dt dtype.DType, a, b Type, swap bool) error {
	x, y := a.Shape.Sizes(), b.Shape.Sizes()
	m, n := len(x)-2, len(y)-2
	inner, cols := y[n], y[n+1]
	if swap {
		inner, cols = cols, inner
	}
	if x[m+1] != inner {
		return badShape("got %s and %s, want equal inner sizes instead of %d and %d", a, b, x[m+1], inner)
	}
	var buf [fewDims]int
	sizes := buf[:0]
	for i := range max(m, n) {
		k, l := 1, 1
		if j := i - (max(m, n) - m); j >= 0 {
			k = x[j]
		}
		if j := i - (max(m, n) - n); j >= 0 {
			l = y[j]
		}
		if k != l && k != 1 && l != 1 {
			return badShape("got %s and %s, want axes before the last two that broadcast", a, b)
		}
		if k == 1 {
			k = l
		}
		sizes = append(sizes, k)
	}
	return s.giveSizes(0, dt, append(sizes, x[m], cols)...)
}

func inferGemm(s *Sig) error {
	if err := s.want(0, wide); err != nil {
		return err
	}
	var dims [2][]shape.Dim
	var buf [2][2]shape.Dim
	for i, attr := range []string{"transA", "transB"} {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
		swap, err := s.wantFlag(attr)
		if err != nil {
			return err
		}
		if dims[i], err = s.dimsIn(buf[i][:], i); err != nil {
			return err
		}
		if swap {
			dims[i][0], dims[i][1] = dims[i][1], dims[i][0]
		}
	}
	if _, ok := unify(dims[0][1], dims[1][0]); !ok {
		return badShape("got %s and %s, want equal inner sizes instead of %s and %s", s.Args[0], s.Args[1], dims[0][1], dims[1][0])
	}
	if err := s.give(0, s.Args[0].DType, dims[0][0], dims[1][1]); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	return s.wantSpread(2, s.Results[0].Shape)
}

// wantSpread checks that an operand, if present, broadcasts to the given shape.
func (s *Sig) wantSpread(arg int, to *shape.Shape) error {
	if !s.Has(arg) || s.Args[arg].Shape == nil {
		return nil
	}
	from := s.Args[arg].Shape
	skip := to.Rank() - from.Rank()
	for i := range from.Rank() {
		if skip < 0 {
			break
		}
		d := from.Dim(i)
		if _, ok := unify(d, to.Dim(skip+i)); !ok && !isSize(d, 1) {
			skip = -1
		}
	}
	if skip < 0 {
		return badShape("operand %d: got %s, want a shape that broadcasts to %s", arg, s.Args[arg], to)
	}
	return nil
}

// squares are the sizes of operand 0, whose last two axes are square matrices;
// nil where its rank is not known.
func (s *Sig) squares() ([]shape.Dim, error) {
	if err := s.want(0, floats); err != nil {
		return nil, err
	}
	if err := s.wantRank(0, 2, -1); err != nil {
		return nil, err
	}
	x := s.Args[0]
	if x.Shape == nil {
		return nil, nil
	}
	dims := x.Shape.Dims()
	n := len(dims) - 2
	d, ok := unify(dims[n], dims[n+1])
	if !ok {
		return nil, badShape("got %s, want square matrices", x)
	}
	dims[n], dims[n+1] = d, d
	return dims, nil
}

func inferDet(s *Sig) error {
	dims, err := s.squares()
	if err != nil {
		return err
	}
	if dims == nil {
		return s.giveAny(0, s.Args[0].DType)
	}
	return s.give(0, s.Args[0].DType, dims[:len(dims)-2]...)
}

func inferInverse(s *Sig) error {
	dims, err := s.squares()
	if err != nil {
		return err
	}
	if dims == nil {
		return s.giveAny(0, s.Args[0].DType)
	}
	return s.give(0, s.Args[0].DType, dims...)
}
