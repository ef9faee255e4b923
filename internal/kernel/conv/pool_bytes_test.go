package conv_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// Maxima of bytes of any sign are the reference's, also where planes are wider
// than a part, and windows larger than the input.
func TestBytePool(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		r := kerneltest.NewRand(51)
		for i := range 120 {
			p := conv.BytePool{Signed: i%2 == 0, Planes: r.IntN(4), Window: randomWindow(r, 1+r.IntN(3))}
			p.Ceil = r.IntN(2) == 0
			switch {
			case i%10 == 0: // parts of rows
				p.In[len(p.In)-1] += r.IntN(15_000 / ref.Size(p.In[:len(p.In)-1]))
			case len(p.In) == 2:
				p.In[0], p.In[1] = p.In[0]+r.IntN(60), p.In[1]+r.IntN(90)
			}
			apart := 0 // bytes between two samples
			if i%6 == 1 && len(p.In) == 2 {
				apart, p.Planes, p.Channels = 7, 90, 45 // a tile has planes of both
				area := ref.Size(p.In)
				p.InSteps = conv.Steps{Batch: 45*area + apart, Channel: area, Plane: area, Row: p.In[1]}
			}
			p.Prepare(v)
			data, least := make([]byte, p.Planes*ref.Size(p.In)), float64(0)
			x := make([]float64, len(data))
			for j := range data {
				data[j] = byte(r.Uint32())
				if x[j] = float64(data[j]); p.Signed {
					x[j], least = float64(int8(data[j])), -128
				}
			}
			want, _ := ref.Pool{Kind: "max", Planes: p.Planes, Window: refWindow(&p.Window)}.Run(x)
			wanted := make([]byte, len(want))
			for j, v := range want {
				if math.IsInf(v, -1) { // no element
					v = least
				}
				wanted[j] = byte(int(v))
			}
			s := kerneltest.NewSpace(t)
			if half := len(data) / 2; apart > 0 {
				data = slices.Concat(data[:half], make([]byte, apart), data[half:])
			}
			src, dst, scratch := kerneltest.In(s, "src", data), kerneltest.Out[byte](s, "dst", len(want)), kerneltest.Out[byte](s, "scratch", p.ScratchBytes())
			kerneltest.Backwards(p.Tiles(), func(t int) { p.Tile(t, scratch, dst, src) })
			s.Check()
			kerneltest.WantEqual(t, dst, wanted)
			if t.Failed() {
				t.Fatalf("case %d: %+v", i, p)
			}
		}
	})
}
