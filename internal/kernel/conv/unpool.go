package conv

import "github.com/tenure-go/tenure/internal/kernel"

// Unpool puts elements at places of a tensor of sizes In, which lies at the
// start of every axis of a result of sizes Out.
type Unpool struct{ In, Out []int }

// Place is where the element of number index in In lies in Out, -1 where it
// lies in neither.
func (u *Unpool) Place(index int64) int {
	if index < 0 || index >= int64(kernel.Product(u.In)) {
		return -1
	}
	rest, at, step := int(index), 0, 1
	for a := len(u.In) - 1; a >= 0; a-- {
		at += rest % u.In[a] * step
		rest /= u.In[a]
		step *= u.Out[a]
	}
	return at
}

// MaxUnpool writes the elements of x at their places and 0 elsewhere. Of two
// elements for one place the last one stays.
func MaxUnpool[T kernel.Number](u *Unpool, dst, x []T, indices []int64) {
	clear(dst)
	for i, v := range x {
		dst[u.Place(indices[i])] = v
	}
}

// Fold adds blocks [Kernel..., Out...] at their places in planes of sizes In:
// it puts the patches of a convolution back. A tile is a plane.
type Fold struct {
	Planes int
	Window
}

// Prepare works out the window.
func (f *Fold) Prepare() { f.Resolve() }

// FoldTile computes plane t.
func FoldTile[T kernel.Number](f *Fold, t int, dst, src []T) {
	w := &f.Window
	plane, blocks := dst[t*w.inArea:][:w.inArea], src[t*w.taps*w.outArea:][:w.taps*w.outArea]
	clear(plane)
	for k := range w.taps {
		from := blocks[k*w.outArea:][:w.outArea]
		lo, hi, shift := w.overlap(k)
		for z := lo[0]; z < hi[0]; z++ {
			for y := lo[1]; y < hi[1]; y++ {
				row := plane[((z*w.stride[0]+shift[0])*w.in[1]+y*w.stride[1]+shift[1])*w.in[2]:][:w.in[2]]
				part := from[(z*w.out[1]+y)*w.out[2]:][:w.out[2]]
				for x := lo[2]; x < hi[2]; x++ {
					row[x*w.stride[2]+shift[2]] += part[x]
				}
			}
		}
	}
}
