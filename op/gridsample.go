package op

import "github.com/tenure-go/tenure/shape"

var gridOps = []*Def{
	{
		Name: "grid_sample", ONNX: "GridSample",
		Doc:     "samples x [N,C,...] at the positions of a grid [N,...,axes], whose coordinates run from -1 to 1 along each axis, the last axis first",
		MinArgs: 2, MaxArgs: 2,
		Attrs: []AttrDef{intAttr("align_corners", 0), stringAttr("mode", "linear"), stringAttr("padding_mode", "zeros")},
		Infer: inferGridSample, Alias: Fresh(),
	},
	{
		Name: "affine_grid", ONNX: "AffineGrid",
		Doc:     "maps the pixel positions of an image, from -1 to 1 along each axis, by matrices [N,axes,axes+1] to a grid [N,...,axes]; operands matrices, image shape",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("align_corners", 0)}, Infer: inferAffineGrid, Alias: Fresh(),
	},
}

func inferGridSample(s *Sig) error {
	if err := s.wantEach(floats, 0, 1); err != nil {
		return err
	}
	if _, err := s.wantFlag("align_corners"); err != nil {
		return err
	}
	if _, err := s.wantOneOf("mode", "linear", "nearest", "cubic"); err != nil {
		return err
	}
	if _, err := s.wantOneOf("padding_mode", "zeros", "border", "reflection"); err != nil {
		return err
	}
	rank := 0
	for i := range 2 {
		if err := s.wantRank(i, 3, 5); err != nil {
			return err
		}
		if sh := s.Args[i].Shape; sh != nil {
			rank = sh.Rank()
		}
	}
	dt := s.Args[0].DType
	if rank == 0 {
		return s.giveAny(0, dt)
	}
	x, err := s.dimsOf(0, rank)
	if err != nil {
		return err
	}
	grid, err := s.dimsOf(1, rank)
	if err != nil {
		return err
	}
	if err := s.meet("batch of x and grid", &x[0], &grid[0]); err != nil {
		return err
	}
	if _, ok := unify(grid[rank-1], shape.N(rank-2)); !ok {
		return badShape("operand 1: got %s, want %d coordinates in the last dimension", s.Args[1], rank-2)
	}
	for _, d := range x[2:] {
		if isSize(d, 0) {
			return badShape("operand 0: got %s, want an element to sample", s.Args[0])
		}
	}
	return s.give(0, dt, append([]shape.Dim{x[0], x[1]}, grid[1:rank-1]...)...)
}

func inferAffineGrid(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.want(1, int64s); err != nil {
		return err
	}
	if _, err := s.wantFlag("align_corners"); err != nil {
		return err
	}
	dt := s.Args[0].DType
	theta, err := s.dimsOf(0, 3)
	if err != nil {
		return err
	}
	axes, ok := theta[1].Size()
	if !ok {
		n, given := s.listLen(1)
		if !given {
			return s.giveAny(0, dt)
		}
		axes = n - 2
	}
	if axes != 2 && axes != 3 {
		return badShape("got %s and sizes %s, want matrices of 2 or 3 rows and 4 or 5 sizes", s.Args[0], s.Args[1])
	}
	if _, ok := unify(theta[2], shape.N(axes+1)); !ok {
		return badShape("operand 0: got %s, want %d columns", s.Args[0], axes+1)
	}
	sizes, known, err := s.sizesOf(1, axes+2)
	if err != nil {
		return err
	}
	if !known {
		sizes = make([]shape.Dim, axes+2)
	}
	if err := s.meet("batch of matrices and sizes", &theta[0], &sizes[0]); err != nil {
		return err
	}
	return s.give(0, dt, append(append([]shape.Dim{theta[0]}, sizes[2:]...), shape.N(axes))...)
}
