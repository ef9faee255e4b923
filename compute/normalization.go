package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"softmax":                oneFloatType(softmaxOf(false)),
	"log_softmax":            oneFloatType(softmaxOf(true)),
	"layer_normalization":    needsFirst(oneFloatType(bindLayerNorm)),
	"instance_normalization": oneFloatType(bindInstanceNorm),
	"group_normalization":    oneFloatType(bindGroupNorm),
	"batch_normalization":    needsFirst(oneFloatType(bindBatchNorm)),
})

// oneFloatType wraps a binder of an operator on floats whose kernels take one
// element type for all operands and results, f32 or f64: others are converted.
func oneFloatType(bind binder) binder {
	return func(c *op.Call) (*Task, error) {
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
	return func(c *op.Call) (*Task, error) {
		sizes := c.In[0].Shape.Sizes()
		axis := axisOf(c, len(sizes))
		spec := &kernel.Softmax{Outer: product(sizes[:axis]), Axis: sizes[axis], Inner: product(sizes[axis+1:]), Log: log}
		if elements(&c.In[0]) == 0 {
			return &Task{}, nil
		}
		bind, ok := floatOf(c.In[0].DType, softmaxTask[float32], softmaxTask[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(c, spec), nil
	}
}

func softmaxTask[T kernel.Float](c *op.Call, spec *kernel.Softmax) *Task {
	if streamed(c, spec.Axis) && spec.Inner == 1 {
		return &Task{Tiles: spec.Tiles(), Scratch: 4 * spec.Axis, Tile: func(tile int, scratch []byte) {
			if sameBytes(c.Out[0].Data, c.In[0].Data) {
				kernel.SoftmaxTile(machine.Best(), spec, tile, nil, out[float32](c, 0), in[float32](c, 0))
				return
			}
			kernel.SoftmaxStream(machine.Best(), spec, tile, view[float32](scratch[:4*spec.Axis]), out[float32](c, 0), in[float32](c, 0))
		}}
	}
	return &Task{Tiles: spec.Tiles(), Scratch: spec.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		kernel.SoftmaxTile(machine.Best(), spec, tile, view[float64](scratch[:spec.ScratchBytes()]), out[T](c, 0), in[T](c, 0))
	}}
}

// streamed tells whether a result by rows is worth writing past the caches.
func streamed(c *op.Call, row int) bool {
	return c.Out[0].DType == dtype.F32 && 4*elements(&c.Out[0]) >= streamBytes && row <= kernel.StreamRows
}

func bindLayerNorm(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	spec := &kernel.Norm{Rows: product(sizes[:axis]), Len: product(sizes[axis:]), Epsilon: c.Float("epsilon")}
	bind, ok := floatOf(c.In[0].DType, layerNormTask[float32], layerNormTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec, sizes[axis:])
}

func layerNormTask[T kernel.Float](c *op.Call, spec *kernel.Norm, row []int) (*Task, error) {
	t := &Task{Tiles: spec.Tiles()}
	// Scale and bias of another shape than a row are spread out in scratch.
	size := c.In[0].DType.Size()
	spread := make([]*kernel.Copy, len(c.In))
	for i := 1; i < len(c.In); i++ {
		if !has(c, i) || elements(&c.In[i]) == spec.Len {
			continue
		}
		if err := checkLoops(row); err != nil {
			return nil, err
		}
		spread[i] = new(kernel.Copy)
		spread[i].PrepareExpand(size, c.In[i].Shape.Sizes(), row)
		t.Scratch = 2 * spec.Len * size
	}
	along := func(i int, scratch []byte) []T {
		if !has(c, i) || spread[i] == nil {
			return in[T](c, i)
		}
		part := scratch[(i-1)*spec.Len*size : i*spec.Len*size]
		for tile := range spread[i].Tiles() {
			spread[i].Tile(machine.Best(), tile, part, c.In[i].Data)
		}
		return view[T](part)
	}
	stream := streamed(c, spec.Len) && t.Scratch == 0 && len(c.Out) == 1
	if stream {
		t.Scratch = 4 * spec.Len
	}
	rms := c.Def.Name == "rms_normalization"
	t.Tile = func(tile int, scratch []byte) {
		if rms {
			kernel.RMSNormTile(machine.Best(), spec, tile, out[T](c, 0), in[T](c, 0), along(1, scratch))
			return
		}
		if stream && !sameBytes(c.Out[0].Data, c.In[0].Data) {
			kernel.NormStream(machine.Best(), spec, tile, view[float32](scratch[:4*spec.Len]), out[float32](c, 0), in[float32](c, 0), in[float32](c, 1), in[float32](c, 2))
			return
		}
		scale, bias := along(1, scratch), along(2, scratch)
		kernel.NormTile(machine.Best(), spec, tile, out[T](c, 0), in[T](c, 0), scale, bias, out[T](c, 1), out[T](c, 2))
	}
	return t, nil
}

func bindInstanceNorm(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	area := product(sizes[2:])
	return channelNorm(c, &kernel.Norm{Rows: sizes[0] * sizes[1], Len: area, Channels: sizes[1], Area: area, Epsilon: c.Float("epsilon")})
}

func bindGroupNorm(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	area, groups := product(sizes[2:]), int(c.Int("num_groups"))
	return channelNorm(c, &kernel.Norm{
		Rows: sizes[0] * groups, Len: sizes[1] / groups * area, Channels: sizes[1], Area: area, Epsilon: c.Float("epsilon"),
	})
}

func channelNorm(c *op.Call, spec *kernel.Norm) (*Task, error) {
	if elements(&c.In[0]) == 0 {
		return &Task{}, nil
	}
	bind, ok := floatOf(c.In[0].DType, channelNormTask[float32], channelNormTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func channelNormTask[T kernel.Float](c *op.Call, spec *kernel.Norm) *Task {
	return &Task{Tiles: spec.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.NormTile(machine.Best(), spec, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), nil, nil)
	}}
}

func bindBatchNorm(c *op.Call) (*Task, error) {
	bind, ok := floatOf(c.In[0].DType, batchNormTask[float32], batchNormTask[float64])
	if c.Int("training_mode") != 0 {
		bind, ok = floatOf(c.In[0].DType, batchNormTraining[float32], batchNormTraining[float64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

// planesOf returns x [N,C,...] as planes of area elements each; a vector is of
// one channel.
func planesOf(c *op.Call) (batch, channels, area int) {
	sizes := c.In[0].Shape.Sizes()
	if len(sizes) == 1 {
		return sizes[0], 1, 1
	}
	return sizes[0], sizes[1], product(sizes[2:])
}

func batchNormTask[T kernel.Float](c *op.Call) *Task {
	batch, channels, area := planesOf(c)
	epsilon := c.Float("epsilon")
	tiles, units := groups(batch*channels, area*c.In[0].DType.Size())
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.BatchNormTile(machine.Best(), lo, hi, area, epsilon, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), in[T](c, 3), in[T](c, 4))
	}}
}

// batchNormTraining normalises by the statistics of x itself, and gives the
// running statistics moved towards them.
func batchNormTraining[T kernel.Float](c *op.Call) *Task {
	batch, channels, area := planesOf(c)
	size := c.In[0].DType.Size()
	epsilon, momentum := c.Float("epsilon"), c.Float("momentum")
	return &Task{Tiles: 1, Scratch: 2 * channels * size, Tile: func(_ int, scratch []byte) {
		mean := view[T](scratch[:channels*size])
		variance := view[T](scratch[channels*size : 2*channels*size])
		kernel.ChannelMoments(machine.Best(), batch, channels, area, mean, variance, in[T](c, 0))
		if elements(&c.In[0]) > 0 {
			kernel.BatchNormTile(machine.Best(), 0, batch*channels, area, epsilon, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), mean, variance)
		}
		for i, own := range [2][]T{mean, variance} {
			running := out[T](c, i+1)
			for ch := range running {
				running[ch] = T(float64(in[T](c, i+3)[ch])*momentum + float64(own[ch])*(1-momentum))
			}
		}
	}}
}
