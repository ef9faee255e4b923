package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"conv":                oneFloatType(bindConv),
	"fused_conv":          bindFusedConv,
	"conv_transpose":      oneFloatType(bindConvTranspose),
	"max_pool":            needsFirst(bindMaxPool),
	"average_pool":        oneFloatType(bindAveragePool),
	"global_max_pool":     oneFloatType(globalPool(kernel.ReduceMax)),
	"global_average_pool": oneFloatType(globalPool(kernel.ReduceMean)),
})

var _ = registerPackers(map[string]packer{
	"conv":       packedConv(oneFloatType(bindConv)),
	"fused_conv": packedConv(bindFusedConv),
})

// windowOf returns the kernels' form of spatial axes that the table worked out.
func windowOf(axes []op.WindowAxis) (kernel.Window, error) {
	var w kernel.Window
	if len(axes) > kernel.MaxSpatial {
		return w, fmt.Errorf("got %d spatial axes, want at most %d: %w", len(axes), kernel.MaxSpatial, op.ErrUnsupported)
	}
	w.Out = []int{}
	for _, a := range axes {
		w.In, w.Out, w.Kernel = append(w.In, a.In), append(w.Out, a.Out), append(w.Kernel, a.Kernel)
		w.Stride, w.Dilation = append(w.Stride, a.Stride), append(w.Dilation, a.Dilation)
		w.PadBegin, w.PadEnd = append(w.PadBegin, a.Begin), append(w.PadEnd, a.End)
	}
	return w, nil
}

// convOf returns what conv and fused_conv have in common.
func convOf(c *op.Call) (*kernel.Conv, error) {
	axes, err := c.ConvAxes()
	if err != nil {
		return nil, err
	}
	k := &kernel.Conv{
		Batch: c.In[0].Shape.Size(0), Group: int(c.Int("group")),
		InChannels: c.In[0].Shape.Size(1), OutChannels: c.In[1].Shape.Size(0),
	}
	if has(c, 2) {
		k.Bias = kernel.BiasRow
	}
	k.Window, err = windowOf(axes)
	return k, err
}

func bindConv(c *op.Call) (*Task, error) {
	if c.In[0].DType != dtype.F64 {
		return plainConv(c)
	}
	k, err := convOf(c)
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	plain := &kernel.PlainConv{Batch: k.Batch, Group: k.Group, InChannels: k.InChannels, OutChannels: k.OutChannels, Window: k.Window}
	plain.Prepare()
	return &Task{Tiles: plain.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.PlainConvTile(plain, tile, out[float64](c, 0), in[float64](c, 0), in[float64](c, 1), in[float64](c, 2))
	}}, nil
}

func bindFusedConv(c *op.Call) (*Task, error) {
	if c.In[0].DType != dtype.F32 {
		return nil, unsupported(c)
	}
	return plainConv(c)
}

// plainConv reads the weights as they lie.
func plainConv(c *op.Call) (*Task, error) {
	k, pre, err := fusedConvOf(c)
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	k.Prepare(machine.Best())
	return runConv(c, k, pre), nil
}

// packedConv reads constant weights in panels where the convolution wants
// them so.
func packedConv(plain binder) packer {
	return func(c *op.Call, constants Constants) (*Task, error) {
		if c.In[0].DType != dtype.F32 || !constants.Is(1) || elements(&c.Out[0]) == 0 {
			return plain(c)
		}
		k, pre, err := fusedConvOf(c)
		if err != nil {
			return nil, err
		}
		k.Prepare(machine.Best())
		if k.PackedFloats() == 0 {
			return runConv(c, k, pre), nil
		}
		form := weightsForm(*k)
		k.PackedWeights = true
		k.Prepare(machine.Best())
		t := runConv(c, k, pre)
		t.setForm(1, form)
		return t, nil
	}
}

// weightsForm is what the panels of a convolution's weights are.
func weightsForm(k kernel.Conv) Form {
	return Form{
		Name:   fmt.Sprintf("convolution panels of %s", k.PackedLayout()),
		Bytes:  4 * k.PackedFloats(),
		Pack:   func(dst, src []byte) { k.PackWeights(view[float32](dst), view[float32](src)) },
		Unpack: func(dst, src []byte) { k.UnpackWeights(view[float32](dst), view[float32](src)) },
	}
}

// runConv is the task of a prepared convolution; pre holds scale and shift of
// the prologue where the call lacks one of the two.
func runConv(c *op.Call, k *kernel.Conv, pre []float32) *Task {
	return &Task{Tiles: k.Tiles(), Scratch: k.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		args := kernel.ConvArgs{
			Out: out[float32](c, 0), In: in[float32](c, 0), Weights: in[float32](c, 1), Bias: in[float32](c, 2),
			Residual: in[float32](c, 3), Scale: in[float32](c, 4), Shift: in[float32](c, 5),
		}
		if args.Scale == nil {
			args.Scale = pre
		}
		if args.Shift == nil {
			args.Shift = pre
		}
		k.Tile(tile, view[float32](scratch), &args)
	}}
}

// activationOf reads the activation of a fused operator.
func activationOf(c *op.Call) kernel.Activation {
	a := kernel.Activation{A: float32(c.Float("alpha")), B: float32(c.Float("beta"))}
	switch c.Str("activation") {
	case "relu":
		a.Op = kernel.Relu
	case "leaky_relu":
		a.Op = kernel.LeakyRelu
	case "sigmoid":
		a.Op = kernel.Sigmoid
	case "tanh":
		a.Op = kernel.Tanh
	case "clip":
		a.Op = kernel.Clip
	case "gelu":
		a.Op = kernel.Gelu
	case "gelu_tanh":
		a.Op = kernel.GeluTanh
	case "silu":
		a.Op = kernel.Silu
	}
	return a
}

// fusedConvOf reads a convolution and what is fused into it: nothing for a
// plain one.
func fusedConvOf(c *op.Call) (k *kernel.Conv, pre []float32, err error) {
	k, err = convOf(c)
	if err != nil || c.Def.Name != "fused_conv" {
		return k, nil, err
	}
	k.Residual, k.Act = has(c, 3), activationOf(c)
	k.ScaleShift, k.PrologueRelu = has(c, 4) || has(c, 5), c.Int("pre_relu") != 0
	if k.ScaleShift && !(has(c, 4) && has(c, 5)) {
		pre = make([]float32, k.InChannels) // no shift
		for i := range pre {
			if !has(c, 4) {
				pre[i] = 1 // no scale
			}
		}
	}
	if c.Str("pool") != "" {
		axes, err := c.FusedPoolAxes()
		if err != nil {
			return nil, nil, err
		}
		k.Pool = &kernel.Pool{Kind: poolKind(c, c.Str("pool") == "max")}
		if k.Pool.Window, err = windowOf(axes); err != nil {
			return nil, nil, err
		}
	}
	return k, pre, nil
}

func poolKind(c *op.Call, largest bool) kernel.PoolKind {
	switch {
	case largest:
		return kernel.PoolMax
	case c.Int("count_include_pad") != 0:
		return kernel.PoolAveragePadded
	}
	return kernel.PoolAverage
}

func bindConvTranspose(c *op.Call) (*Task, error) {
	found, err := c.ConvTransposeAxes()
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	axes := make([]kernel.ConvTransposeAxis, len(found))
	for i, a := range found {
		axes[i] = kernel.ConvTransposeAxis{In: a.In, Out: a.Out, Kernel: a.Kernel, Stride: a.Stride, Dilation: a.Dilation, PadBefore: a.Begin}
	}
	if c.In[0].DType == dtype.F32 && len(axes) <= kernel.MaxSpatial {
		return convTransposeTask(c, axes), nil
	}
	bind, ok := floatOf(c.In[0].DType, plainConvTransposeTask[float32], plainConvTransposeTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, axes), nil
}

func convTransposeTask(c *op.Call, axes []kernel.ConvTransposeAxis) *Task {
	k := &kernel.ConvTranspose{
		Batch: c.In[0].Shape.Size(0), Group: int(c.Int("group")),
		InChannels: c.In[0].Shape.Size(1), OutChannels: c.Out[0].Shape.Size(1), Axes: axes,
	}
	k.Prepare(machine.Best())
	return &Task{Tiles: k.Tiles(), Scratch: k.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		k.Tile(tile, view[float32](scratch), &kernel.ConvTransposeArgs{
			Out: out[float32](c, 0), In: in[float32](c, 0), Weights: in[float32](c, 1), Bias: in[float32](c, 2),
		})
	}}
}

func plainConvTransposeTask[T kernel.Float](c *op.Call, axes []kernel.ConvTransposeAxis) *Task {
	k := &kernel.PlainConvTranspose{
		Batch: c.In[0].Shape.Size(0), Channels: c.In[0].Shape.Size(1), Out: c.Out[0].Shape.Size(1), Groups: int(c.Int("group")), Axes: axes,
	}
	return &Task{Tiles: k.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.PlainConvTransposeTile(k, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2))
	}}
}

func bindMaxPool(c *op.Call) (*Task, error) {
	switch c.In[0].DType {
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	case dtype.F32:
		if !wanted(c, 1) {
			return poolTask(c, kernel.PoolMax)
		}
		return maxIndexTask(c)
	case dtype.F64:
		return plainPoolTask[float64](c, kernel.PoolMax)
	case dtype.I8:
		return plainPoolTask[int8](c, kernel.PoolMax)
	case dtype.U8:
		return plainPoolTask[uint8](c, kernel.PoolMax)
	}
	return nil, unsupported(c)
}

func bindAveragePool(c *op.Call) (*Task, error) {
	kind := poolKind(c, false)
	if c.In[0].DType == dtype.F64 {
		return plainPoolTask[float64](c, kind)
	}
	return poolTask(c, kind)
}

// poolOf returns the pool of a call.
func poolOf(c *op.Call, kind kernel.PoolKind) (*kernel.Pool, error) {
	axes, err := c.PoolAxes()
	if err != nil {
		return nil, err
	}
	p := &kernel.Pool{Kind: kind, Planes: c.In[0].Shape.Size(0) * c.In[0].Shape.Size(1)}
	if kind == kernel.PoolMax {
		p.ColumnMajor = c.Int("storage_order") != 0
	}
	p.Window, err = windowOf(axes)
	return p, err
}

func poolTask(c *op.Call, kind kernel.PoolKind) (*Task, error) {
	p, err := poolOf(c, kind)
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	if coversAll(&p.Window) {
		if kind == kernel.PoolMax {
			return globalPool(kernel.ReduceMax)(c)
		}
		return globalPool(kernel.ReduceMean)(c)
	}
	p.Prepare(machine.Best())
	return &Task{Tiles: p.Tiles(), Scratch: p.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		p.Tile(tile, view[float32](scratch), out[float32](c, 0), in[float32](c, 0))
	}}, nil
}

// coversAll tells whether the only window of each axis is the whole input.
func coversAll(w *kernel.Window) bool {
	for i, n := range w.In {
		if n == 0 || w.Out[i] != 1 || w.Kernel[i] != n || w.Dilation[i] != 1 || w.PadBegin[i] != 0 || w.PadEnd[i] != 0 {
			return false
		}
	}
	return true
}

func maxIndexTask(c *op.Call) (*Task, error) {
	p, err := poolOf(c, kernel.PoolMax)
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	p.Prepare(machine.Best())
	return &Task{Tiles: p.Tiles(), Tile: func(tile int, _ []byte) {
		p.TileIndices(tile, out[float32](c, 0), out[int64](c, 1), in[float32](c, 0))
	}}, nil
}

func plainPoolTask[T kernel.Number](c *op.Call, kind kernel.PoolKind) (*Task, error) {
	p, err := poolOf(c, kind)
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	plain := &kernel.PlainPool{Kind: kind, Planes: p.Planes, Window: p.Window, ColumnMajor: p.ColumnMajor}
	plain.Prepare()
	return &Task{Tiles: plain.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.PlainPoolTile(plain, tile, out[T](c, 0), out[int64](c, 1), in[T](c, 0))
	}}, nil
}

// globalPool reduces all spatial axes.
func globalPool(kind kernel.ReduceKind) binder {
	return func(c *op.Call) (*Task, error) {
		sizes := c.In[0].Shape.Sizes()
		reduced := make([]bool, len(sizes))
		for i := 2; i < len(sizes); i++ {
			reduced[i] = true
		}
		spec := new(kernel.Reduce)
		spec.Prepare(kind, sizes, reduced)
		bind, ok := floatOf(c.In[0].DType, reduceTask[float32], reduceTask[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(c, spec), nil
	}
}
