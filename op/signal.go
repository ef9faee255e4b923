package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// signalOps work on sampled signals. A complex number is two numbers in the
// last axis, a real one is one.
var signalOps = []*Def{
	{
		Name: "dft", ONNX: "DFT",
		Doc:     "computes the discrete Fourier transform of x [...,1 or 2] along an axis; operands x, length, axis",
		MinArgs: 1, MaxArgs: 3, Attrs: []AttrDef{intAttr("inverse", 0), intAttr("onesided", 0)}, Infer: inferDFT, Alias: Fresh(),
	},
	{
		Name: "stft", ONNX: "STFT",
		Doc:     "computes the discrete Fourier transforms of frames of a signal [N,length,1 or 2]; operands signal, step, window, frame length",
		MinArgs: 2, MaxArgs: 4, Attrs: []AttrDef{intAttr("onesided", 1)}, Infer: inferSTFT, Alias: Fresh(),
	},
	{
		Name: "mel_weight_matrix", ONNX: "MelWeightMatrix",
		Doc:     "returns the matrix that maps the frequencies of a transform to bins of the mel scale; operands bins, length, sample rate in Hz, lower and upper frequency in Hz",
		MinArgs: 5, MaxArgs: 5, Attrs: []AttrDef{{Name: "output_datatype", Kind: DTypeKind, Default: dtype.F32}},
		Infer: inferMel, Alias: Fresh(),
	},
}

// DFTAxis returns the axis of a dft and its length, and false where they are
// not known.
func (s *Sig) DFTAxis() (axis, length int, known bool, err error) {
	axis, l, known, err := s.dftAxis()
	if err != nil || !known {
		return 0, 0, false, err
	}
	length, known = l.Size()
	return axis, length, known, nil
}

func (s *Sig) dftAxis() (axis int, length shape.Dim, known bool, err error) {
	x := s.Args[0].Shape
	if x == nil {
		return 0, shape.Unknown, false, nil
	}
	at := int64(-2)
	if s.Has(2) {
		list, ok := s.KnownInts(2)
		if !ok || len(list) != 1 {
			return 0, shape.Unknown, false, nil
		}
		at = list[0]
	}
	if axis, err = axisOf(at, x.Rank()); err != nil {
		return 0, shape.Unknown, false, err
	}
	if axis == x.Rank()-1 {
		return 0, shape.Unknown, false, badShape("axis: got %d for %s, want another than that of the complex numbers", at, s.Args[0])
	}
	if s.Has(1) {
		list, ok := s.KnownInts(1)
		if !ok || len(list) != 1 {
			return axis, shape.Unknown, true, nil
		}
		n, err := transformLength(list[0])
		return axis, shape.N(n), true, err
	}
	length = x.Dim(axis)
	if n, ok := length.Size(); ok {
		if s.Int("inverse") == 1 && s.Int("onesided") == 1 {
			n = 2 * (n - 1) // the half that is there is that of an even length
		}
		n, err = transformLength(int64(n))
		return axis, shape.N(n), true, err
	}
	if s.Int("inverse") == 1 && s.Int("onesided") == 1 {
		length = shape.Unknown
	}
	return axis, length, true, nil
}

// transformLength checks a length: a transform of it fits in memory.
func transformLength(n int64) (int, error) {
	if n < 1 || n > 1<<28 {
		return 0, badShape("length: got %d, want 1 to 2^28", n)
	}
	return int(n), nil
}

// half is the part of a spectrum that tells it all.
func half(d shape.Dim) shape.Dim {
	if n, ok := d.Size(); ok {
		return shape.N(n/2 + 1)
	}
	return shape.Unknown
}

// complexNumbers checks that the last axis of an operand holds numbers: real
// ones only, complex ones only, or either.
func (s *Sig) complexNumbers(arg int, complexOnly, realOnly bool) error {
	x := s.Args[arg].Shape
	if x == nil {
		return nil
	}
	n, ok := x.Dim(x.Rank() - 1).Size()
	if ok && (n < 1 || n > 2 || complexOnly && n != 2 || realOnly && n != 1) {
		want := "1 or 2 numbers"
		if complexOnly {
			want = "2 numbers"
		} else if realOnly {
			want = "1 number"
		}
		return badShape("operand %d: got %s, want %s in the last axis", arg, s.Args[arg], want)
	}
	return nil
}

func inferDFT(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	for i := 1; i < 3; i++ {
		if err := s.want(i, indices); err != nil {
			return err
		}
		if err := s.wantOne(i); err != nil {
			return err
		}
	}
	inverse, err := s.wantFlag("inverse")
	if err != nil {
		return err
	}
	onesided, err := s.wantFlag("onesided")
	if err != nil {
		return err
	}
	if err := s.wantRank(0, 2, -1); err != nil {
		return err
	}
	x := s.Args[0]
	if err := s.complexNumbers(0, inverse && onesided, onesided && !inverse); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	axis, length, known, err := s.dftAxis()
	if err != nil {
		return err
	}
	if !known {
		return s.giveRank(0, x.DType, x.Shape.Rank())
	}
	dims := x.Shape.Dims()
	dims[axis] = length
	dims[len(dims)-1] = shape.N(2)
	switch {
	case onesided && inverse:
		dims[len(dims)-1] = shape.N(1)
	case onesided:
		dims[axis] = half(length)
	}
	return s.give(0, x.DType, dims...)
}

// STFTSizes returns the step and the length of the frames of a stft, and false
// where they are not known.
func (s *Sig) STFTSizes() (step, length int, known bool, err error) {
	st, l, err := s.stft()
	if err != nil {
		return 0, 0, false, err
	}
	step, ok1 := st.Size()
	length, ok2 := l.Size()
	return step, length, ok1 && ok2, nil
}

func (s *Sig) stft() (step, length shape.Dim, err error) {
	if list, ok := s.KnownInts(1); ok && len(list) == 1 {
		n, err := transformLength(list[0])
		if err != nil {
			return step, length, err
		}
		step = shape.N(n)
	}
	switch {
	case s.Has(3):
		if list, ok := s.KnownInts(3); ok && len(list) == 1 {
			n, err := transformLength(list[0])
			if err != nil {
				return step, length, err
			}
			length = shape.N(n)
		}
	case s.Has(2) && s.Args[2].Shape != nil:
		length = s.Args[2].Shape.Dim(0)
	case !s.Has(2) && s.Args[0].Shape != nil:
		length = s.Args[0].Shape.Dim(1)
	}
	if n, ok := length.Size(); ok {
		if _, err := transformLength(int64(n)); err != nil {
			return step, length, err
		}
	}
	return step, length, nil
}

func inferSTFT(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	for i := 1; i < 4; i += 2 {
		if err := s.want(i, indices); err != nil {
			return err
		}
		if err := s.wantOne(i); err != nil {
			return err
		}
	}
	onesided, err := s.wantFlag("onesided")
	if err != nil {
		return err
	}
	x, err := s.dimsOf(0, 3)
	if err != nil {
		return err
	}
	if err := s.complexNumbers(0, false, onesided); err != nil {
		return err
	}
	if err := s.wantRank(2, 1, 1); err != nil {
		return err
	}
	step, length, err := s.stft()
	if err != nil {
		return err
	}
	if err := s.wantVector(2, length, "element of a frame"); err != nil {
		return err
	}
	frames := shape.Unknown
	n, ok1 := x[1].Size()
	hop, ok2 := step.Size()
	size, ok3 := length.Size()
	if ok1 && ok3 && size > n {
		return badShape("got frames of %d for a signal of %d, want no longer ones", size, n)
	}
	if ok1 && ok2 && ok3 {
		frames = shape.N((n-size)/hop + 1)
	}
	bins := length
	if onesided {
		bins = half(length)
	}
	return s.give(0, s.Args[0].DType, x[0], frames, bins, shape.N(2))
}

func inferMel(s *Sig) error {
	if err := s.wantEach(indices, 0, 1, 2); err != nil {
		return err
	}
	if err := s.wantEach(floats, 3, 4); err != nil {
		return err
	}
	for i := range 5 {
		if err := s.wantOne(i); err != nil {
			return err
		}
	}
	dt := s.DType("output_datatype")
	if !numeric.has(dt) {
		return badDType("output_datatype: got %s, want an element type of %s", dt, numeric)
	}
	rows, columns := shape.Unknown, shape.Unknown
	if list, ok := s.KnownInts(1); ok && len(list) == 1 {
		n, err := transformLength(list[0])
		if err != nil {
			return err
		}
		rows = half(shape.N(n))
	}
	if list, ok := s.KnownInts(0); ok && len(list) == 1 {
		n, err := sizeOf(list[0], "num_mel_bins")
		if err != nil {
			return err
		}
		columns = shape.N(n)
	}
	return s.give(0, dt, rows, columns)
}
