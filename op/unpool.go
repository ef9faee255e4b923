package op

import (
	"github.com/tenure-go/tenure/shape"
)

// unpoolOps put what windows made back to where it came from.
var unpoolOps = []*Def{
	{
		Name: "max_unpool", ONNX: "MaxUnpool",
		Doc:     "writes the elements of x [N,C,...] to the positions that the indices of a max_pool name, and zeros elsewhere; an operand may hold a larger shape",
		MinArgs: 2, MaxArgs: 3, Attrs: []AttrDef{needed("kernel_shape", Ints), intsAttr("pads"), intsAttr("strides")},
		Infer: inferMaxUnpool, Alias: Fresh(),
	},
	{
		Name: "col2im", ONNX: "Col2Im",
		Doc:     "sums the blocks [N,C*block,count] at their positions in images of a given shape; operands x, image shape, block shape",
		MinArgs: 3, MaxArgs: 3, Attrs: []AttrDef{intsAttr("dilations"), intsAttr("pads"), intsAttr("strides")},
		Infer: inferCol2Im, Alias: Fresh(),
	},
}

// UnpoolSizes returns the shape that the indices of a max_unpool with a static
// operand count in.
func (s *Sig) UnpoolSizes() ([]int, error) {
	if err := s.wantStatic(0); err != nil {
		return nil, err
	}
	dims, err := s.unpool()
	if err != nil {
		return nil, err
	}
	sizes := make([]int, len(dims))
	for i, d := range dims {
		sizes[i], _ = d.Size()
	}
	return sizes, nil
}

func (s *Sig) unpool() ([]shape.Dim, error) {
	n := len(s.Ints("kernel_shape"))
	if n == 0 || n > MaxRank-2 {
		return nil, badShape("kernel_shape: got %v, want a size per spatial axis", s.Ints("kernel_shape"))
	}
	kernel, err := s.perAxis("kernel_shape", n, 1, 1)
	if err != nil {
		return nil, err
	}
	strides, err := s.perAxis("strides", n, 1, 1)
	if err != nil {
		return nil, err
	}
	pads, err := s.perAxis("pads", 2*n, 0, 0)
	if err != nil {
		return nil, err
	}
	dims, err := s.dimsOf(0, n+2)
	if err != nil {
		return nil, err
	}
	for i := range n {
		size, ok := dims[i+2].Size()
		if !ok {
			dims[i+2] = shape.Unknown
			continue
		}
		reach, ok1 := mulSize(max(size-1, 0), strides[i])
		reach, ok2 := addSize(reach, kernel[i])
		pad, ok3 := addSize(pads[i], pads[n+i])
		if !ok1 || !ok2 || !ok3 || size == 0 || pad > reach {
			return nil, badShape("got size %d on spatial axis %d with kernel %d, stride %d and pads %d, want an element or more to put back", size, i, kernel[i], strides[i], pad)
		}
		dims[i+2] = shape.N(reach - pad)
	}
	return dims, nil
}

func inferMaxUnpool(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.wantEach(int64s, 1, 2); err != nil {
		return err
	}
	dims, err := s.unpool()
	if err != nil {
		return err
	}
	if x := s.Args[0].Shape; x != nil {
		if err := s.wantDims(1, x.Dims()); err != nil {
			return err
		}
	}
	if !s.Has(2) {
		return s.give(0, s.Args[0].DType, dims...)
	}
	sizes, known, err := s.sizesOf(2, len(dims))
	if err != nil {
		return err
	}
	if !known {
		return s.giveRank(0, s.Args[0].DType, len(dims))
	}
	for i, d := range dims {
		n, given := d.Size()
		m, _ := sizes[i].Size()
		if given && (m < n || i < 2 && m != n) {
			return badShape("operand 2: got %v, want a shape that %v fits in", sizes, dims)
		}
	}
	return s.give(0, s.Args[0].DType, sizes...)
}

// sizesOf is the value of an operand that lists n sizes, and false where it is
// not known.
func (s *Sig) sizesOf(arg, n int) ([]shape.Dim, bool, error) {
	if err := s.wantRank(arg, 1, 1); err != nil {
		return nil, false, err
	}
	if got, ok := s.listLen(arg); ok && got != n {
		return nil, false, badShape("operand %d: got %s, want %d sizes", arg, s.Args[arg], n)
	}
	list, known := s.KnownInts(arg)
	dims := make([]shape.Dim, 0, len(list))
	for _, v := range list {
		size, err := sizeOf(v, "size")
		if err != nil {
			return nil, false, err
		}
		dims = append(dims, shape.N(size))
	}
	return dims, known, nil
}

// FoldAxes returns the spatial axes of a col2im whose shapes are known: In is
// the image, Out counts the blocks.
func (s *Sig) FoldAxes() ([]WindowAxis, bool, error) {
	axes, _, known, err := s.fold()
	return axes, known, err
}

func (s *Sig) fold() (axes []WindowAxis, image []shape.Dim, known bool, err error) {
	n, ok := s.listLen(1)
	if !ok {
		n, ok = s.listLen(2)
	}
	if !ok || n > MaxRank-2 {
		return nil, nil, false, nil
	}
	image, ok1, err := s.sizesOf(1, n)
	if err != nil {
		return nil, nil, false, err
	}
	block, ok2, err := s.sizesOf(2, n)
	if err != nil {
		return nil, nil, false, err
	}
	w := window{kernel: block}
	if w.strides, err = s.perAxis("strides", n, 1, 1); err != nil {
		return nil, nil, false, err
	}
	if w.dilations, err = s.perAxis("dilations", n, 1, 1); err != nil {
		return nil, nil, false, err
	}
	if w.pads, err = s.perAxis("pads", 2*n, 0, 0); err != nil {
		return nil, nil, false, err
	}
	if !ok1 {
		return nil, make([]shape.Dim, n), false, nil
	}
	if !ok2 {
		return nil, image, false, nil
	}
	for _, k := range block {
		if isSize(k, 0) {
			return nil, nil, false, badShape("block: got %v, want sizes of 1 or more", block)
		}
	}
	axes, _, err = w.slide(image, nil)
	return axes, image, err == nil, err
}

func inferCol2Im(s *Sig) error {
	if err := s.want(0, numeric); err != nil {
		return err
	}
	if err := s.wantEach(int64s, 1, 2); err != nil {
		return err
	}
	x, err := s.dimsOf(0, 3)
	if err != nil {
		return err
	}
	axes, image, known, err := s.fold()
	if err != nil {
		return err
	}
	if image == nil {
		return s.giveAny(0, s.Args[0].DType)
	}
	channels := shape.Unknown
	if known {
		taps, blocks, fits := 1, 1, true
		for _, a := range axes {
			var ok1, ok2 bool
			taps, ok1 = mulSize(taps, a.Kernel)
			blocks, ok2 = mulSize(blocks, a.Out)
			fits = fits && ok1 && ok2
		}
		if _, ok := unify(x[2], shape.N(blocks)); !ok || !fits {
			return badShape("operand 0: got %s, want %d blocks", s.Args[0], blocks)
		}
		if rows, ok := x[1].Size(); ok {
			if rows%taps != 0 {
				return badShape("operand 0: got %s, want a multiple of the %d elements of a block", s.Args[0], taps)
			}
			channels = shape.N(rows / taps)
		}
	}
	return s.give(0, s.Args[0].DType, append([]shape.Dim{x[0], channels}, image...)...)
}
