package op

import "github.com/tenure-go/tenure/shape"

// roiOps read regions of images.
var roiOps = []*Def{
	{
		Name: "roi_align", ONNX: "RoiAlign",
		Doc:     "averages samples of regions of x [N,C,H,W] in the bins of a grid; operands x, corners [regions,4], image index of each region",
		MinArgs: 3, MaxArgs: 3,
		Attrs: []AttrDef{
			stringAttr("coordinate_transformation_mode", "half_pixel"), stringAttr("mode", "avg"), intAttr("output_height", 1), intAttr("output_width", 1),
			intAttr("sampling_ratio", 0), floatAttr("spatial_scale", 1),
		},
		Infer: inferRoiAlign, Alias: Fresh(),
	},
	{
		Name: "max_roi_pool", ONNX: "MaxRoiPool",
		Doc:     "returns the maxima of regions of x [N,C,H,W] in the bins of a grid; operands x, image index and corners of each region [regions,5]",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{needed("pooled_shape", Ints), floatAttr("spatial_scale", 1)},
		Infer: inferMaxRoiPool, Alias: Fresh(),
	},
	{
		Name: "deform_conv", ONNX: "DeformConv",
		Doc:     "convolves x [N,C,...] with kernel taps moved by offsets per position; operands x, weights, offsets, bias, and a factor per tap and position",
		MinArgs: 3, MaxArgs: 5,
		Attrs: []AttrDef{intsAttr("dilations"), intAttr("group", 1), intsAttr("kernel_shape"), intAttr("offset_group", 1), intsAttr("pads"), intsAttr("strides")},
		Infer: inferDeformConv, Alias: Fresh(),
	},
}

// regions checks x and a list of regions, and sets the result.
func (s *Sig) regions(columns int, height, width int64) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	x, err := s.dimsOf(0, 4)
	if err != nil {
		return err
	}
	rois, err := s.dimsOf(1, 2)
	if err != nil {
		return err
	}
	if _, ok := unify(rois[1], shape.N(columns)); !ok {
		return badShape("operand 1: got %s, want %d numbers per region", s.Args[1], columns)
	}
	if s.Has(2) {
		if err := s.wantVector(2, rois[0], "region"); err != nil {
			return err
		}
		if at := s.Args[2].Shape; at != nil {
			rois[0], _ = unify(rois[0], at.Dim(0))
		}
	}
	if height < 1 || width < 1 || height > maxSize || width > maxSize {
		return badShape("got a grid of %d by %d, want 1 by 1 or more", height, width)
	}
	return s.give(0, s.Args[0].DType, rois[0], x[1], shape.N(int(height)), shape.N(int(width)))
}

func inferRoiAlign(s *Sig) error {
	if err := s.want(2, int64s); err != nil {
		return err
	}
	if _, err := s.wantOneOf("coordinate_transformation_mode", "half_pixel", "output_half_pixel"); err != nil {
		return err
	}
	if _, err := s.wantOneOf("mode", "avg", "max"); err != nil {
		return err
	}
	if ratio := s.Int("sampling_ratio"); ratio < 0 || ratio > 1<<10 {
		return badShape("sampling_ratio: got %d, want 0 to 2^10", ratio)
	}
	return s.regions(4, s.Int("output_height"), s.Int("output_width"))
}

func inferMaxRoiPool(s *Sig) error {
	grid := s.Ints("pooled_shape")
	if len(grid) != 2 {
		return badShape("pooled_shape: got %v, want height and width", grid)
	}
	return s.regions(5, grid[0], grid[1])
}

// DeformAxes returns the spatial axes of a deform_conv with static operands.
func (s *Sig) DeformAxes() ([]WindowAxis, error) {
	if err := s.wantStatic(0, 1); err != nil {
		return nil, err
	}
	axes, _, err := s.deform()
	return axes, err
}

// deform works out the spatial axes and the dimensions of the result, nil
// where not even their number is known.
func (s *Sig) deform() ([]WindowAxis, []shape.Dim, error) {
	rank := 0
	for i := range 3 {
		if err := s.wantRank(i, 3, -1); err != nil {
			return nil, nil, err
		}
		if sh := s.Args[i].Shape; sh != nil && rank == 0 {
			rank = sh.Rank()
		}
	}
	if rank == 0 {
		return nil, nil, nil
	}
	x, err := s.dimsOf(0, rank)
	if err != nil {
		return nil, nil, err
	}
	weights, err := s.dimsOf(1, rank)
	if err != nil {
		return nil, nil, err
	}
	n := rank - 2
	w := window{kernel: weights[2:]}
	if w.strides, err = s.perAxis("strides", n, 1, 1); err != nil {
		return nil, nil, err
	}
	if w.dilations, err = s.perAxis("dilations", n, 1, 1); err != nil {
		return nil, nil, err
	}
	if w.pads, err = s.perAxis("pads", 2*n, 0, 0); err != nil {
		return nil, nil, err
	}
	if err := w.takeKernel(s); err != nil {
		return nil, nil, err
	}
	axes, dims, err := w.slide(x[2:], []shape.Dim{x[0], weights[0]})
	if err != nil {
		return nil, nil, err
	}
	return axes, dims, s.deformGroups(x, weights, w.kernel, dims)
}

// deformGroups holds channels, offsets and factors against each other, and
// completes the dimensions of the result from those of the offsets.
func (s *Sig) deformGroups(x, weights, kernel, result []shape.Dim) error {
	group, offsets := s.Int("group"), s.Int("offset_group")
	if group < 1 || offsets < 1 || group > maxSize || offsets > maxSize {
		return badShape("got group %d and offset_group %d, want 1 or more", group, offsets)
	}
	if c, ok := x[1].Size(); ok {
		each, known := weights[1].Size()
		if c%int(group) != 0 || c%int(offsets) != 0 || known && each != c/int(group) {
			return badShape("got %s and %s in %d groups and %d of offsets, want as many channels for each", s.Args[0], s.Args[1], group, offsets)
		}
	}
	if m, ok := weights[0].Size(); ok && m%int(group) != 0 {
		return badShape("operand 1: got %s, want a multiple of the %d groups", s.Args[1], group)
	}
	taps, err := product(append([]shape.Dim{shape.N(int(offsets))}, kernel...))
	if err != nil {
		return err
	}
	for _, p := range [2]struct{ arg, each int }{{2, len(kernel)}, {4, 1}} {
		i, each := p.arg, p.each
		if !s.Has(i) || s.Args[i].Shape == nil {
			continue
		}
		count := shape.Unknown
		if t, ok := taps.Size(); ok {
			numbers, fits := mulSize(t, each)
			if !fits {
				return badShape("got %d offsets per place, want less than 2^58", t)
			}
			count = shape.N(numbers)
		}
		dims := append([]shape.Dim{x[0], count}, result[2:]...)
		if err := s.wantDims(i, dims); err != nil {
			return err
		}
		for k, d := range s.Args[i].Shape.Dims()[2:] {
			result[k+2], _ = unify(result[k+2], d)
		}
	}
	return s.wantVector(3, weights[0], "channel of the result")
}

func inferDeformConv(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	for i := 1; i < 5; i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	_, dims, err := s.deform()
	if err != nil {
		return err
	}
	return s.giveKnown(s.Args[0].DType, dims)
}
