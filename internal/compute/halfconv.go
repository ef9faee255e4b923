package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel/conv"
)

// halfConv is a convolution of 16-bit floats, and the operations fused into it.
type halfConv struct {
	problem floatConv // as if of float32
	half    conv.Half
}

func (k *halfConv) takesStrides() bool { return true }

func (k *halfConv) Refill(t *Task) error {
	c := t.Call
	if err := k.problem.fill(c); err != nil {
		return err
	}
	k.problem.WeightType = k.half.Type
	if k.problem.weights != nil {
		if c.In[1].Shape != k.problem.weights {
			return ErrRebind
		}
		if !k.setForm(t) {
			return ErrRebind
		}
	}
	if elements(&c.Out[0]) == 0 {
		return nil
	}
	k.half.Prepare(t.variant, &k.problem.Conv)
	t.Tiles, t.Scratch = k.half.Tiles(), k.half.ScratchBytes()
	return nil
}

// setForm is that of floatConv for constant weights that keep 16 bits.
func (k *halfConv) setForm(t *Task) bool {
	panels, isNew, ok := k.problem.formOf(t)
	if !isNew {
		return ok
	}
	form := Form{
		Name:  fmt.Sprintf("16-bit convolution panels of %s", panels),
		Bytes: 2 * panels.Floats(),
		Pack:  func(dst, src []byte) { panels.PackHalf(view[uint16](dst), view[uint16](src)) },
	}
	if panels.Restores() {
		form.Unpack = func(dst, src []byte) { panels.UnpackHalf(view[uint16](dst), view[uint16](src)) }
	}
	t.setForm(1, form)
	return true
}

func (k *halfConv) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := conv.HalfArgs{
		Out: out[uint16](c, 0), In: in[uint16](c, 0), Weights: in[uint16](c, 1), Bias: in[uint16](c, 2),
		Residual: in[uint16](c, 3), Scale: in[float32](c, 4), Shift: in[float32](c, 5),
	}
	k.problem.fillPrologue(&args.Scale, &args.Shift)
	k.half.Tile(tile, view[float32](scratch), &args)
}

// halfConvTranspose is a transposed convolution of 16-bit floats.
type halfConvTranspose struct {
	problem conv.Transpose // as if of float32
	half    conv.HalfTranspose
}

func (k *halfConvTranspose) takesStrides() bool { return true }

func (k *halfConvTranspose) Refill(t *Task) error {
	ok, err := fillConvTranspose(t.Call, &k.problem)
	if err != nil || !ok {
		return err
	}
	k.half.Prepare(t.variant, &k.problem)
	t.Tiles, t.Scratch = k.half.Tiles(), k.half.ScratchBytes()
	return nil
}

func (k *halfConvTranspose) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := conv.HalfTransposeArgs{Out: out[uint16](c, 0), In: in[uint16](c, 0), Weights: in[uint16](c, 1), Bias: in[uint16](c, 2)}
	k.half.Tile(tile, view[float32](scratch), &args)
}
