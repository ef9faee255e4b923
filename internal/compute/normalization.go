package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"softmax":                oneFloatType(softmaxOf(false)),
	"log_softmax":            oneFloatType(softmaxOf(true)),
	"layer_normalization":    needsFirst(oneFloatType(bindLayerNorm)),
	"instance_normalization": oneFloatType(bindInstanceNorm),
	"group_normalization":    oneFloatType(bindGroupNorm),
	"batch_normalization":    needsFirst(oneFloatType(bindBatchNorm)),
	"lrn":                    oneFloatType(bindLRN),
})

// oneFloatType wraps a binder of an operator on floats whose kernels take one
// element type for all operands and results, f32 or f64: others are converted.
func oneFloatType(bind binder) binder {
	return func(c *op.Call) (Kernel, error) {
		dt := dtype.F32
		if c.In[0].DType == dtype.F64 {
			dt = dtype.F64
		}
		same := true
		retype := func(args []op.Arg) []dtype.DType {
			types := make([]dtype.DType, len(args))
			for i := range args {
				if types[i] = args[i].DType; types[i].IsFloat() && types[i] != dt {
					types[i], same = dt, false
				}
			}
			return types
		}
		ins, outs := retype(c.In), retype(c.Out)
		if same {
			return bind(c)
		}
		return converted(c, ins, outs)
	}
}

func softmaxOf(log bool) binder {
	return func(c *op.Call) (Kernel, error) {
		bind, ok := floatOf(c.In[0].DType, newSoftmax[float32], newSoftmax[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(log), nil
	}
}

type softmax[T kernel.Float] struct {
	log     bool
	spec    reduce.Softmax
	streams bool // rows of a large result are written past the caches
}

func newSoftmax[T kernel.Float](log bool) Kernel { return &softmax[T]{log: log} }

func (k *softmax[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.spec = reduce.Softmax{Outer: product(sizes[:axis]), Axis: sizes[axis], Inner: product(sizes[axis+1:]), Log: k.log}
	if elements(&c.In[0]) == 0 {
		return nil
	}
	t.Tiles, t.Scratch = k.spec.Tiles(), k.spec.ScratchBytes()
	if k.streams = streamed(c, k.spec.Axis) && k.spec.Inner == 1; k.streams {
		t.Scratch = 4 * k.spec.Axis
	}
	return nil
}

func (k *softmax[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	switch {
	case !k.streams:
		reduce.SoftmaxTile(t.variant, &k.spec, tile, view[float64](scratch[:k.spec.ScratchBytes()]), out[T](c, 0), in[T](c, 0))
	case sameBytes(c.Out[0].Data, c.In[0].Data):
		reduce.SoftmaxTile(t.variant, &k.spec, tile, nil, out[float32](c, 0), in[float32](c, 0))
	default:
		reduce.SoftmaxStream(t.variant, &k.spec, tile, view[float32](scratch[:4*k.spec.Axis]), out[float32](c, 0), in[float32](c, 0))
	}
}

// streamed tells whether a result by rows is worth writing past the caches.
func streamed(c *op.Call, row int) bool {
	return c.Out[0].DType == dtype.F32 && 4*elements(&c.Out[0]) >= streamBytes && row <= reduce.StreamRows
}

func bindLayerNorm(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newLayerNorm[float32], newLayerNorm[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

// layerNorm normalises rows of the last axes. Scale and bias of another shape
// than a row are spread out in scratch.
type layerNorm[T kernel.Float] struct {
	rms     bool
	spec    reduce.Norm
	spread  [3]bool // per operand
	copies  [3]move.Copy
	streams bool // rows of a large result are written past the caches
}

func newLayerNorm[T kernel.Float](c *op.Call) Kernel {
	return &layerNorm[T]{rms: c.Def.Name == "rms_normalization"}
}

func (k *layerNorm[T]) Refill(t *Task) error {
	c := t.Call
	sizes, size := c.In[0].Shape.Sizes(), c.In[0].DType.Size()
	axis := axisOf(c, len(sizes))
	row := sizes[axis:]
	k.spec = reduce.Norm{Rows: product(sizes[:axis]), Len: product(row), Epsilon: c.Float("epsilon")}
	t.Tiles = k.spec.Tiles()
	for i := 1; i < len(c.In); i++ {
		k.spread[i] = has(c, i) && elements(&c.In[i]) != k.spec.Len
		if !k.spread[i] {
			continue
		}
		if err := checkLoops(row); err != nil {
			return err
		}
		k.copies[i].PrepareExpand(size, c.In[i].Shape.Sizes(), row, nil, nil)
		t.Scratch = 2 * k.spec.Len * size
	}
	if k.streams = streamed(c, k.spec.Len) && t.Scratch == 0 && len(c.Out) == 1; k.streams {
		t.Scratch = 4 * k.spec.Len
	}
	return nil
}

// along returns operand i as a row.
func (k *layerNorm[T]) along(t *Task, i int, scratch []byte) []T {
	c := t.Call
	if !has(c, i) || !k.spread[i] {
		return in[T](c, i)
	}
	size := k.spec.Len * c.In[0].DType.Size()
	part := scratch[(i-1)*size : i*size]
	for tile := range k.copies[i].Tiles() {
		k.copies[i].Tile(t.variant, tile, part, c.In[i].Data)
	}
	return view[T](part)
}

func (k *layerNorm[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	switch {
	case k.rms:
		reduce.RMSNormTile(t.variant, &k.spec, tile, out[T](c, 0), in[T](c, 0), k.along(t, 1, scratch))
	case k.streams && !sameBytes(c.Out[0].Data, c.In[0].Data):
		reduce.NormStream(t.variant, &k.spec, tile, view[float32](scratch[:4*k.spec.Len]), out[float32](c, 0), in[float32](c, 0), in[float32](c, 1), in[float32](c, 2))
	default:
		scale, bias := k.along(t, 1, scratch), k.along(t, 2, scratch)
		reduce.NormTile(t.variant, &k.spec, tile, out[T](c, 0), in[T](c, 0), scale, bias, out[T](c, 1), out[T](c, 2))
	}
}

func bindInstanceNorm(c *op.Call) (Kernel, error) { return channelNormOn(c, 0) }

func bindGroupNorm(c *op.Call) (Kernel, error) { return channelNormOn(c, int(c.Int("num_groups"))) }

func channelNormOn(c *op.Call, groups int) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newChannelNorm[float32], newChannelNorm[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(groups), nil
}

// channelNorm normalises groups of channels, 0 for as many as channels.
type channelNorm[T kernel.Float] struct {
	groups int
	spec   reduce.Norm
}

func newChannelNorm[T kernel.Float](groups int) Kernel { return &channelNorm[T]{groups: groups} }

func (k *channelNorm[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	channels, area := sizes[1], product(sizes[2:])
	groups := k.groups
	if groups == 0 {
		groups = channels
	}
	if elements(&c.In[0]) == 0 {
		return nil
	}
	k.spec = reduce.Norm{Rows: sizes[0] * groups, Len: channels / groups * area, Channels: channels, Area: area, Epsilon: c.Float("epsilon")}
	t.Tiles = k.spec.Tiles()
	return nil
}

func (k *channelNorm[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	reduce.NormTile(t.variant, &k.spec, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), nil, nil)
}

func bindBatchNorm(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newBatchNorm[float32], newBatchNorm[float64])
	if c.Int("training_mode") != 0 {
		bind, ok = floatOf(c.In[0].DType, newBatchTraining[float32], newBatchTraining[float64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

// planes is x [N,C,...] as planes of area elements each; a vector is of one
// channel.
type planes struct{ batch, channels, area int }

func planesOf(c *op.Call) planes {
	sizes := c.In[0].Shape.Sizes()
	if len(sizes) == 1 {
		return planes{sizes[0], 1, 1}
	}
	return planes{sizes[0], sizes[1], product(sizes[2:])}
}

type batchNorm[T kernel.Float] struct {
	planes
	epsilon float64
	each    groups
}

func newBatchNorm[T kernel.Float](c *op.Call) Kernel {
	return &batchNorm[T]{epsilon: c.Float("epsilon")}
}

func (k *batchNorm[T]) Refill(t *Task) error {
	k.planes = planesOf(t.Call)
	k.each = groupsOf(k.batch*k.channels, k.area*t.Call.In[0].DType.Size())
	t.Tiles = k.each.tiles()
	return nil
}

func (k *batchNorm[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.each.of(tile)
	reduce.BatchNormTile(t.variant, lo, hi, k.area, k.epsilon, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), in[T](c, 3), in[T](c, 4))
}

// batchTraining normalises by the statistics of x itself, and returns the
// running statistics moved towards them.
type batchTraining[T kernel.Float] struct {
	planes
	epsilon, momentum float64
}

func newBatchTraining[T kernel.Float](c *op.Call) Kernel {
	return &batchTraining[T]{epsilon: c.Float("epsilon"), momentum: c.Float("momentum")}
}

func (k *batchTraining[T]) Refill(t *Task) error {
	k.planes = planesOf(t.Call)
	t.Tiles, t.Scratch = 1, 2*k.channels*t.Call.In[0].DType.Size()
	return nil
}

func (k *batchTraining[T]) Tile(t *Task, _ int, scratch []byte) {
	c := t.Call
	size := k.channels * c.In[0].DType.Size()
	mean, variance := view[T](scratch[:size]), view[T](scratch[size:2*size])
	reduce.ChannelMoments(t.variant, k.batch, k.channels, k.area, mean, variance, in[T](c, 0))
	if elements(&c.In[0]) > 0 {
		reduce.BatchNormTile(t.variant, 0, k.batch*k.channels, k.area, k.epsilon, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), mean, variance)
	}
	for i, own := range [2][]T{mean, variance} {
		running := out[T](c, i+1)
		for ch := range running {
			running[ch] = T(float64(in[T](c, i+3)[ch])*k.momentum + float64(own[ch])*(1-k.momentum))
		}
	}
}

func bindLRN(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newLRN[float32], newLRN[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

type lrn[T kernel.Float] struct{ spec reduce.LRN }

func newLRN[T kernel.Float](c *op.Call) Kernel {
	return &lrn[T]{reduce.LRN{Size: int(c.Int("size")), Alpha: c.Float("alpha"), Beta: c.Float("beta"), Bias: c.Float("bias")}}
}

func (k *lrn[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	k.spec.Outer, k.spec.Channels, k.spec.Inner = sizes[0], sizes[1], product(sizes[2:])
	if elements(&c.In[0]) == 0 {
		return nil
	}
	t.Tiles, t.Scratch = k.spec.Tiles(), k.spec.ScratchElements()*c.In[0].DType.Size()
	return nil
}

func (k *lrn[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	size := k.spec.ScratchElements() * c.In[0].DType.Size()
	reduce.LRNTile(t.variant, &k.spec, tile, view[T](scratch[:size]), out[T](c, 0), in[T](c, 0))
}
