package compute

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// withPitch returns an operand with the elements of a, between whose rows lie
// elements of others.
func withPitch(a op.Arg, gap int) op.Arg {
	sizes := a.Shape.Sizes()
	strides := make([]int, len(sizes))
	step := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		if i == len(sizes)-2 {
			step += gap
		}
		strides[i] = step
		step *= sizes[i]
	}
	l, err := shape.Strided(a.Shape, strides...)
	if err != nil {
		panic(err)
	}
	n, err := l.ByteSpan(a.DType)
	if err != nil {
		panic(err)
	}
	out := op.Arg{Type: a.Type, Layout: l, Data: aligned(n)}
	copyRows(out, a, true)
	return out
}

// copyRows copies rows between an operand with gaps and one without.
func copyRows(with, without op.Arg, to bool) {
	sizes := with.Shape.Sizes()
	row := sizes[len(sizes)-1] * with.DType.Size()
	pitch := with.Layout.Strides()[len(sizes)-2] * with.DType.Size()
	for i := range with.Shape.NumElements() * with.DType.Size() / max(row, 1) {
		a, b := with.Data[i*pitch:][:row], without.Data[i*row:][:row]
		if to {
			copy(a, b)
		} else {
			copy(b, a)
		}
	}
}

// Products read packed constants whose other operands have gaps between rows.
func TestStridedPacked(t *testing.T) {
	f32 := func(seed uint64, dims ...int) op.Arg { return random(dtype.F32, seed, -1, 1, dims...) }
	for _, rows := range []int{1, 3, 130} {
		for _, compressed := range []bool{false, true} {
			constants := Constants{Is: func(i int) bool { return i == 1 }, Compressed: compressed}
			c := call(t, "matmul", nil, 1, f32(1, 2, rows, 300), f32(2, 300, 200))
			task, err := BindConstants(c, constants)
			if err != nil {
				t.Fatal(err)
			}
			want := runPacked(t, task)
			c = call(t, "matmul", nil, 1, withPitch(f32(1, 2, rows, 300), 70), f32(2, 300, 200))
			freshResults(c)
			y := withPitch(c.Out[0], 24)
			c.Out[0] = y
			if task, err = BindConstants(c, constants); err != nil {
				t.Fatal(err)
			}
			if len(task.Forms) != 1 {
				t.Fatalf("got %d forms, want that of operand 1", len(task.Forms))
			}
			form := task.Forms[1]
			if form.Measure != nil {
				form.Bytes = form.Measure(c.In[1].Data)
			}
			packed := aligned(form.Bytes)
			form.Pack(packed, c.In[1].Data)
			c.In[1].Data = packed
			if err := task.run(aligned(task.Scratch)); err != nil {
				t.Fatal(err)
			}
			got := op.Arg{Type: y.Type, Data: aligned(len(want))}
			copyRows(y, got, false)
			if !bytes.Equal(got.Data, want) {
				t.Errorf("%d rows, compressed %v: got another result than without gaps", rows, compressed)
			}
		}
	}
}

// Convolutions read packed weights, and compute the same from images that lie
// anywhere as from those of one piece.
func TestStridedPackedConv(t *testing.T) {
	f32 := func(seed uint64, dims ...int) op.Arg { return random(dtype.F32, seed, -1, 1, dims...) }
	constants := Constants{Is: func(i int) bool { return i == 1 }}
	for i, w := range []op.Arg{f32(2, 16, 16, 3, 3), f32(2, 40, 16, 1, 1), f32(2, 8, 48, 1, 1), f32(2, 8, 3, 5, 5), f32(2, 3, 70, 3, 3), f32(2, 128, 64, 3, 3)} {
		x := f32(1, 2, w.Shape.Size(1), 30, 30)
		c := call(t, "conv", attrs("strides", []int64{1 + int64(i%2), 1}), 1, x, w)
		task, err := BindConstants(c, constants)
		if err != nil {
			t.Fatal(err)
		}
		want := runPacked(t, task)
		sizes := c.Out[0].Shape.Sizes()
		for _, gaps := range [][3]int{{0, 0, 7}, {0, 9, 0}, {5, 0, 0}, {3, 2, 1}} {
			c := call(t, "conv", attrs("strides", []int64{1 + int64(i%2), 1}), 1, withGaps(x, gaps), w)
			freshResults(c)
			y := withGaps(op.Arg{Type: c.Out[0].Type, Data: want}, gaps)
			c.Out[0] = op.Arg{Type: y.Type, Layout: y.Layout, Data: aligned(len(y.Data))}
			if task, err = BindConstants(c, constants); err != nil {
				t.Fatal(err)
			}
			for arg, form := range task.Forms {
				packed := aligned(form.Bytes)
				form.Pack(packed, c.In[arg].Data)
				c.In[arg].Data = packed
			}
			if err := task.run(aligned(task.Scratch)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(c.Out[0].Data, y.Data) {
				t.Errorf("weights %s, gaps %v, result %v: got another result than without gaps", w.Shape, gaps, sizes)
			}
		}
	}
}

// withGaps returns images with the elements of a, and so many zeros between
// samples, channels and rows.
func withGaps(a op.Arg, gaps [3]int) op.Arg {
	sizes := a.Shape.Sizes()
	row := sizes[3] + gaps[2]
	channel := sizes[2]*row + gaps[1]
	strides := []int{sizes[1]*channel + gaps[0], channel, row, 1}
	l, err := shape.Strided(a.Shape, strides...)
	if err != nil {
		panic(err)
	}
	n, err := l.ByteSpan(a.DType)
	if err != nil {
		panic(err)
	}
	out := op.Arg{Type: a.Type, Layout: l, Data: aligned(n)}
	for i := range product(sizes[:3]) {
		at := i/sizes[2]/sizes[1]*strides[0] + i/sizes[2]%sizes[1]*channel + i%sizes[2]*row
		copy(out.Data[at*4:][:sizes[3]*4], a.Data[i*sizes[3]*4:])
	}
	return out
}

// BenchmarkStrided compares calls of operands and results with gaps with calls
// without, and a copy.
func BenchmarkStrided(b *testing.B) {
	f32 := func(seed uint64, dims ...int) op.Arg { return random(dtype.F32, seed, -1, 1, dims...) }
	for _, c := range []struct {
		name  string
		attrs op.Attrs
		x, w  op.Arg
	}{
		{"relu", nil, f32(1, 128, 256), absent}, {"relu", nil, f32(1, 4096, 112), absent}, {"relu", nil, f32(1, 2048, 1024), absent},
		{"add", nil, f32(1, 128, 256), f32(2, 128, 256)}, {"add", nil, f32(1, 4096, 112), f32(2, 4096, 112)},
		{"matmul", nil, f32(1, 64, 256), f32(2, 256, 256)}, {"matmul", nil, f32(1, 512, 512), f32(2, 512, 512)},
	} {
		in := []op.Arg{c.x}
		if !c.w.IsZero() {
			in = append(in, c.w)
		}
		for _, way := range []string{"strided", "copied"} {
			b.Run(fmt.Sprintf("%s/%v/%s", c.name, c.x.Shape, way), func(b *testing.B) {
				plain := call(b, c.name, c.attrs, 1, in...)
				freshResults(plain)
				gaps := call(b, "copy", nil, 1, withPitch(c.x, 64))
				freshResults(gaps)
				tasks := []*op.Call{gaps, plain}
				if way == "strided" {
					of := *plain
					of.In = append([]op.Arg{gaps.In[0]}, in[1:]...)
					tasks = []*op.Call{&of}
				}
				var bound []*Task
				for _, c := range tasks {
					task, err := Bind(c)
					if err != nil {
						b.Fatal(err)
					}
					bound = append(bound, task)
				}
				scratch := aligned(bound[len(bound)-1].Scratch)
				for b.Loop() {
					for _, task := range bound {
						if err := task.run(scratch); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
