package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// halfGemm is a product of matrices of 16-bit floats.
type halfGemm struct {
	problem floatGemm // as if of float32
	half    gemm.Half
}

func (k *halfGemm) takesStrides() bool { return true }

func (k *halfGemm) Refill(t *Task) error {
	p := &k.problem
	if err := p.fill(t.Call); err != nil {
		return err
	}
	if p.weights != nil {
		if t.Call.In[1].Shape != p.weights {
			return ErrRebind
		}
		p.PackedB = true
		if t.Forms == nil {
			t.setForm(1, halfPanelsForm(t.variant, p.Gemm))
		}
	}
	k.half.Gemm = p.Gemm
	k.half.Prepare(t.variant)
	t.Tiles, t.Scratch = k.half.Tiles(), k.half.ScratchBytes()
	return nil
}

// halfPanelsForm is panelsForm for 16-bit floats. Alpha is not in the panels.
func halfPanelsForm(v *kernel.Variant, g gemm.Gemm) Form {
	g = gemm.Gemm{N: g.N, K: g.K, TransB: g.TransB, Alpha: 1, PackedB: true}
	return Form{
		Name:  fmt.Sprintf("16-bit panels of %dx%d%s", g.K, g.N, sourceOf(g)),
		Bytes: 2 * g.PackedBFloats(v),
		Pack: func(dst, src []byte) {
			pack := g
			pack.PackHalf(v, view[uint16](dst), view[uint16](src))
		},
		Unpack: func(dst, src []byte) {
			unpack := g
			unpack.UnpackHalf(v, view[uint16](dst), view[uint16](src))
		},
	}
}

func (k *halfGemm) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := gemm.HalfArgs{C: out[uint16](c, 0), A: in[uint16](c, 0), B: in[uint16](c, 1), Bias: in[uint16](c, 2), Residual: in[uint16](c, 3)}
	k.half.Tile(tile, view[float32](scratch), &args)
}

func (k *halfGemm) mostScratch(t *Task, _ Fixed) int {
	most := gemm.Half{Gemm: k.problem.problem.floatGemm(), Type: k.half.Type}
	most.PackedB = k.problem.PackedB
	return most.MostScratchBytes(t.variant)
}
