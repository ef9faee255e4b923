package compute

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"conv":           bindConv,
	"fused_conv":     bindFusedConv,
	"conv_transpose": bindConvTranspose,
})

var _ = registerPackers(map[string]packer{
	"conv":       packedConv(bindConv),
	"fused_conv": packedConv(bindFusedConv),
})

// slide describes a window along the spatial axes of a call. It is read once
// for all sizes of the operand that the window slides over.
type slide struct {
	op.Slide
	kernel *shape.Shape // of the weights that it was read for
	rank   int          // of the operand, 0 before it was read
	axes   []op.WindowAxis
}

// over returns the axes for an operand of the given sizes: batch, channels and
// spatial ones. weights are nil where attributes say all about the window.
func (k *slide) over(c *op.Call, read func(*op.Sig) (op.Slide, error), sizes []int, weights *shape.Shape) ([]op.WindowAxis, error) {
	if k.rank != len(sizes) || k.kernel != weights {
		of, err := read(c.Sig)
		if err != nil {
			return nil, err
		}
		k.Slide, k.rank, k.kernel = of, len(sizes), weights
	}
	var err error
	k.axes, err = k.Axes(k.axes[:0], sizes[2:])
	return k.axes, err
}

// fillWindow sets a window to spatial axes that the table worked out. It
// reuses the window's lists.
func fillWindow(w *conv.Window, axes []op.WindowAxis) error {
	if len(axes) > conv.MaxSpatial {
		return fmt.Errorf("got %d spatial axes, want at most %d: %w", len(axes), conv.MaxSpatial, op.ErrUnsupported)
	}
	*w = conv.Window{
		In: w.In[:0], Out: w.Out[:0], Kernel: w.Kernel[:0],
		Stride: w.Stride[:0], Dilation: w.Dilation[:0], PadBegin: w.PadBegin[:0], PadEnd: w.PadEnd[:0],
	}
	if w.Out == nil {
		w.Out = []int{} // they are known, be there none
	}
	for _, a := range axes {
		w.In, w.Out, w.Kernel = append(w.In, a.In), append(w.Out, a.Out), append(w.Kernel, a.Kernel)
		w.Stride, w.Dilation = append(w.Stride, a.Stride), append(w.Dilation, a.Dilation)
		w.PadBegin, w.PadEnd = append(w.PadBegin, a.Begin), append(w.PadEnd, a.End)
	}
	return nil
}

func bindConv(c *op.Call) (Kernel, error) {
	if c.In[0].DType == dtype.F64 {
		return &plainConv{}, nil
	}
	return bindFusedConv(c)
}

func bindFusedConv(c *op.Call) (Kernel, error) {
	switch dt := c.In[0].DType; {
	case isHalf(dt):
		return &halfConv{problem: *newConv(c), half: conv.Half{Type: dt}}, nil
	case dt == dtype.F32:
		return newConv(c), nil
	}
	return nil, unsupported(c)
}

// plainConv is a convolution of f64.
type plainConv struct {
	conv.Plain
	slide slide
}

func (k *plainConv) Refill(t *Task) error {
	c := t.Call
	axes, err := k.slide.over(c, (*op.Sig).ConvSlide, c.In[0].Shape.Sizes(), c.In[1].Shape)
	if err != nil {
		return err
	}
	k.Batch, k.Group = c.In[0].Shape.Size(0), int(c.Int("group"))
	k.InChannels, k.OutChannels = c.In[0].Shape.Size(1), c.In[1].Shape.Size(0)
	if err := fillWindow(&k.Window, axes); err != nil || elements(&c.Out[0]) == 0 {
		return err
	}
	k.InSteps, k.OutSteps = stepsOf(&c.In[0]), stepsOf(&c.Out[0])
	k.Prepare()
	t.Tiles = k.Tiles()
	return nil
}

func (k *plainConv) takesStrides() bool { return true }

func (k *plainConv) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	conv.PlainTile(&k.Plain, tile, out[float64](c, 0), in[float64](c, 0), in[float64](c, 1), in[float64](c, 2))
}

// floatConv is a convolution of f32, and the operations fused into it.
type floatConv struct {
	conv.Conv
	slide     slide
	act       gemm.Activation
	poolAct   gemm.Activation // of a depthwise convolution
	pool      conv.Pool
	poolSlide slide
	between   []int     // sizes of the pooled operand
	pre       []float32 // scale or shift of the prologue where the call lacks one of the two

	weights       *shape.Shape // of operand 1 where it is a constant that may be read in panels,
	untransformed bool         // but not transformed
	fixed         Fixed
	form          conv.WeightPanels // the task's
}

func newConv(c *op.Call) *floatConv {
	k := &floatConv{}
	if c.Def.Name == "fused_conv" {
		k.act = activationOf(c)
		k.poolAct = gemm.Activation{Op: unaryNamed[c.Str("pool_activation")], A: float32(c.Float("pool_alpha")), B: float32(c.Float("pool_beta"))}
	}
	return k
}

// packedConv reads constant weights in panels where that pays.
func packedConv(plain binder) packer {
	return func(_ *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
		of, err := plain(c)
		if err == nil && constants.Is(1) {
			var problem *floatConv
			switch k := of.(type) {
			case *floatConv:
				problem = k
			case *halfConv:
				problem = &k.problem
			default:
				return of, nil
			}
			problem.weights, problem.untransformed, problem.fixed = c.In[1].Shape, constants.Direct, constants.Fixed
		}
		return of, err
	}
}

// fill sets the problem of a call, with nothing fused into it for a plain
// convolution, which is not prepared.
func (k *floatConv) fill(c *op.Call) error {
	axes, err := k.slide.over(c, (*op.Sig).ConvSlide, c.In[0].Shape.Sizes(), c.In[1].Shape)
	if err != nil {
		return err
	}
	to := conv.Conv{
		Batch: c.In[0].Shape.Size(0), Group: int(c.Int("group")), InChannels: c.In[0].Shape.Size(1), OutChannels: c.In[1].Shape.Size(0),
		Window: k.Window, Direct: k.untransformed, FixedPictures: k.fixedPictures(c),
	}
	if err := fillWindow(&to.Window, axes); err != nil {
		return err
	}
	if to.InSteps = stepsOf(&c.In[0]); has(c, 3) {
		to.ResidualSteps = stepsOf(&c.In[3])
	}
	if has(c, 2) {
		to.Bias = gemm.BiasRow
	}
	if c.Def.Name == "fused_conv" {
		if err := k.fuse(c, &to); err != nil {
			return err
		}
	}
	if to.Pool == nil {
		to.OutSteps = stepsOf(&c.Out[0])
	} else {
		to.Pool.OutSteps = stepsOf(&c.Out[0])
	}
	k.Reset(to)
	return nil
}

// fixedPictures returns how many pictures of one size there are at least; 0 if
// there may be others.
func (k *floatConv) fixedPictures(c *op.Call) int {
	if k.fixed == nil {
		return 0
	}
	for axis := 2; axis < c.In[0].Shape.Rank(); axis++ {
		if !k.fixed(0, axis) {
			return 0
		}
	}
	if k.fixed(0, 0) {
		return c.In[0].Shape.Size(0)
	}
	return 1
}

func (k *floatConv) takesStrides() bool { return true }

var _ = registerWalkers(convolvesRows, "conv", "fused_conv")

// convolvesRows: images whose rows lie in one piece, at any distance.
func convolvesRows(s *op.Sig, in, out []*shape.Layout) bool {
	for i, l := range in {
		if i != 0 && i != 3 && !noGaps([]*shape.Layout{l}) {
			return false
		}
	}
	if s.Has(3) && s.Def.Name == "fused_conv" && s.Str("pool") != "" && in[3] != nil && !isWhole(in[3], 2) {
		return false
	}
	return s.Args[0].Shape.Rank()-2 <= conv.MaxSpatial && areNear(in) && imagesInRows(in) && imagesInRows(out)
}

// areNear reports whether offsets between channels fit the tables of kernels.
// Those of channels that follow each other are known to them.
func areNear(layouts []*shape.Layout) bool {
	return !slices.ContainsFunc(layouts, func(l *shape.Layout) bool {
		return l != nil && !l.IsContiguous() && !isWhole(l, 1) && l.Strides()[1] > conv.MostChannelStep
	})
}

// imagesInRows is inRows for images: one of a single element is in rows however
// it lies.
func imagesInRows(layouts []*shape.Layout) bool {
	for _, l := range layouts {
		if l == nil || l.IsContiguous() {
			continue
		}
		last := l.Shape().Rank() - 1
		for last >= 2 && l.Shape().Size(last) == 1 {
			last--
		}
		if last >= 2 && l.Strides()[last] != 1 {
			return false
		}
	}
	return true
}

// fuse adds the operations fused into a convolution.
func (k *floatConv) fuse(c *op.Call, to *conv.Conv) error {
	to.Residual, to.Act = has(c, 3), k.act
	to.ScaleShift, to.PrologueRelu = has(c, 4) || has(c, 5), c.Int("pre_relu") != 0
	if to.ScaleShift && !(has(c, 4) && has(c, 5)) && len(k.pre) != to.InChannels {
		k.pre = make([]float32, to.InChannels) // no shift
		for i := range k.pre {
			if !has(c, 4) {
				k.pre[i] = 1 // no scale
			}
		}
	}
	if c.Str("pool") == "" {
		return nil
	}
	k.between = append(k.between[:0], to.Batch, to.OutChannels)
	k.between = append(k.between, to.Window.Out...)
	axes, err := k.poolSlide.over(c, (*op.Sig).FusedPoolSlide, k.between, nil)
	if err != nil {
		return err
	}
	pool := conv.Pool{Kind: poolKind(c, c.Str("pool") == "max"), Window: k.pool.Window}
	if c.Str("pool") == "depthwise" {
		pool.Kind, pool.Act = conv.PoolDepthwise, k.poolAct
	}
	if err := fillWindow(&pool.Window, axes); err != nil {
		return err
	}
	k.pool.Reset(pool)
	to.Pool = &k.pool
	return nil
}

func (k *floatConv) Refill(t *Task) error {
	c := t.Call
	if err := k.fill(c); err != nil {
		return err
	}
	if k.weights != nil {
		if c.In[1].Shape != k.weights {
			return ErrRebind
		}
		if !k.setForm(t) {
			return ErrRebind
		}
	}
	if elements(&c.Out[0]) == 0 {
		return nil
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchBytes()
	return nil
}

// setForm sets the form of constant weights. It depends on the sizes of the
// operand that the window slides over only where these are fixed. It returns
// false if the task has another one.
func (k *floatConv) setForm(t *Task) bool {
	panels, isNew, ok := k.formOf(t)
	if !isNew {
		return ok
	}
	form := Form{
		Name:  fmt.Sprintf("convolution panels of %s", panels),
		Bytes: 4 * panels.Floats(),
		Pack:  func(dst, src []byte) { panels.Pack(view[float32](dst), view[float32](src)) },
	}
	if panels.Restores() {
		form.Unpack = func(dst, src []byte) { panels.Unpack(view[float32](dst), view[float32](src)) }
	}
	t.setForm(1, form)
	return true
}

// formOf decides whether constant weights are packed, and reports whether the
// task has no form of them yet. It is not ok if the task has another one.
func (k *floatConv) formOf(t *Task) (panels conv.WeightPanels, isNew, ok bool) {
	panels, k.PackedWeights = k.WeightPanels(t.variant)
	if isNew = k.PackedWeights && t.Forms == nil; isNew {
		k.form = panels
	}
	return panels, isNew, t.Forms == nil || panels == k.form
}

func (k *floatConv) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := conv.Args{
		Out: out[float32](c, 0), In: in[float32](c, 0), Weights: in[float32](c, 1), Bias: in[float32](c, 2),
		Residual: in[float32](c, 3), Scale: in[float32](c, 4), Shift: in[float32](c, 5),
		PoolWeights: in[float32](c, 6), PoolBias: in[float32](c, 7),
	}
	k.fillPrologue(&args.Scale, &args.Shift)
	k.Conv.Tile(tile, view[float32](scratch), &args)
}

// fillPrologue sets the one of scale and shift that the call lacks.
func (k *floatConv) fillPrologue(scale, shift *[]float32) {
	if *scale == nil {
		*scale = k.pre
	}
	if *shift == nil {
		*shift = k.pre
	}
}

// activationOf reads the activation of a fused operator, which may have none.
func activationOf(c *op.Call) gemm.Activation {
	return gemm.Activation{Op: unaryNamed[c.Str("activation")], A: float32(c.Float("alpha")), B: float32(c.Float("beta"))}
}

// convTranspose is a transposed convolution of f32.
type convTranspose struct{ conv.Transpose }

func bindConvTranspose(c *op.Call) (Kernel, error) {
	few := c.In[0].Shape.Rank()-2 <= conv.MaxSpatial
	switch dt := c.In[0].DType; {
	case isHalf(dt) && few:
		return &halfConvTranspose{half: conv.HalfTranspose{Type: dt}}, nil
	case isHalf(dt):
		return halfAsF32(c)
	case dt == dtype.F32 && few:
		return &convTranspose{}, nil
	}
	bind, ok := floatOf(c.In[0].DType, newPlainConvTranspose[float32], newPlainConvTranspose[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// transposeAxes sets the spatial axes of a transposed convolution, in the
// elements of to where they suffice.
func transposeAxes(c *op.Call, to []conv.TransposeAxis) ([]conv.TransposeAxis, error) {
	axes, err := c.ConvTransposeAxes()
	to = to[:0]
	for _, a := range axes {
		to = append(to, conv.TransposeAxis{In: a.In, Out: a.Out, Kernel: a.Kernel, Stride: a.Stride, Dilation: a.Dilation, PadBefore: a.Begin})
	}
	return to, err
}

func (k *convTranspose) Refill(t *Task) error {
	ok, err := fillConvTranspose(t.Call, &k.Transpose)
	if err != nil || !ok {
		return err
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchBytes()
	return nil
}

// fillConvTranspose sets the problem of a call, which is not prepared. It
// returns false if the result has no element.
func fillConvTranspose(c *op.Call, k *conv.Transpose) (ok bool, err error) {
	if k.Axes, err = transposeAxes(c, k.Axes); err != nil || elements(&c.Out[0]) == 0 {
		return false, err
	}
	if len(k.Axes) > conv.MaxSpatial {
		return false, ErrRebind
	}
	k.Batch, k.Group = c.In[0].Shape.Size(0), int(c.Int("group"))
	k.InChannels, k.OutChannels = c.In[0].Shape.Size(1), c.Out[0].Shape.Size(1)
	k.InSteps, k.OutSteps = stepsOf(&c.In[0]), stepsOf(&c.Out[0])
	return true, nil
}

// stepsOf returns how images with gaps lie, zero for those without.
func stepsOf(a *op.Arg) conv.Steps {
	if !hasGaps(a) {
		return conv.Steps{}
	}
	return conv.StepsOf(a.Layout.Strides())
}

func (k *convTranspose) takesStrides() bool { return true }

var _ = registerWalkers(transposesRows, "conv_transpose")

// transposesRows: images whose rows lie in one piece, at any distance, of the
// types and numbers of axes that have a fast kernel.
func transposesRows(s *op.Sig, in, out []*shape.Layout) bool {
	return s.Args[0].DType != dtype.F64 && s.Args[0].Shape.Rank()-2 <= conv.MaxSpatial && noGaps(in[1:]) && imagesInRows(in[:1]) && imagesInRows(out)
}

func (k *convTranspose) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := conv.TransposeArgs{Out: out[float32](c, 0), In: in[float32](c, 0), Weights: in[float32](c, 1), Bias: in[float32](c, 2)}
	k.Transpose.Tile(tile, view[float32](scratch), &args)
}

// plainConvTranspose is for element types and numbers of axes without a fast
// kernel.
type plainConvTranspose[T kernel.Float] struct{ conv.PlainTranspose }

func newPlainConvTranspose[T kernel.Float]() Kernel { return &plainConvTranspose[T]{} }

func (k *plainConvTranspose[T]) Refill(t *Task) (err error) {
	c := t.Call
	if k.Axes, err = transposeAxes(c, k.Axes); err != nil || elements(&c.Out[0]) == 0 {
		return err
	}
	if c.In[0].DType == dtype.F32 && len(k.Axes) <= conv.MaxSpatial {
		return ErrRebind // there is a fast kernel
	}
	k.Batch, k.Channels = c.In[0].Shape.Size(0), c.In[0].Shape.Size(1)
	k.Out, k.Groups = c.Out[0].Shape.Size(1), int(c.Int("group"))
	t.Tiles = k.Tiles()
	return nil
}

func (k *plainConvTranspose[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	conv.PlainTransposeTile(&k.PlainTranspose, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2))
}
