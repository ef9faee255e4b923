package compute

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// BenchmarkRun measures the cost of a run beyond its tiles.
func BenchmarkRun(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, tiles := range []int{1, 16} {
			b.Run(fmt.Sprintf("threads=%d/tiles=%d", threads, tiles), func(b *testing.B) {
				p := NewPool(threads)
				defer p.Close()
				task := taskOf(&op.Call{Sig: &op.Sig{Def: &op.Def{Name: "nothing"}}}, tiles, &funcs{tile: func(int, []byte) {}})
				done := make(chan struct{})
				for b.Loop() {
					if err := p.Run(done, task, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCall runs calls of models.
func BenchmarkCall(b *testing.B) {
	x := random(dtype.F32, 1, -1, 1, 1, 64, 56, 56)
	calls := map[string]*op.Call{
		"add":       call(b, "add", nil, 1, x, x),
		"relu":      call(b, "relu", nil, 1, x),
		"bias":      call(b, "add", nil, 1, x, random(dtype.F32, 1, 0, 1, 64, 1, 1)),
		"concat":    call(b, "concat", attrs("axis", 1), 1, x, x),
		"transpose": call(b, "transpose", attrs("perm", []int64{0, 2, 3, 1}), 1, x),
		"conv3x3":   call(b, "conv", attrs("pads", []int64{1, 1, 1, 1}), 1, x, random(dtype.F32, 2, -1, 1, 64, 64, 3, 3)),
		"max_pool":  call(b, "max_pool", attrs("kernel_shape", []int64{3, 3}, "strides", []int64{2, 2}), 1, x),
		"matmul":    call(b, "matmul", nil, 1, random(dtype.F32, 1, -1, 1, 128, 768), random(dtype.F32, 2, -1, 1, 768, 768)),
		"softmax":   call(b, "softmax", nil, 1, random(dtype.F32, 1, -1, 1, 12, 128, 128)),
		"layernorm": call(b, "layer_normalization", nil, 1, random(dtype.F32, 1, -1, 1, 128, 768), random(dtype.F32, 1, -1, 1, 768)),
		"shape":     call(b, "concat", attrs("axis", 0), 1, ints(1), ints(2), ints(3)),
	}
	for name, c := range calls {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				p := NewPool(threads)
				defer p.Close()
				task, err := Bind(c)
				if err != nil {
					b.Fatal(err)
				}
				for i := range c.Out {
					c.Out[i].Data = emptyData(c.Out[i].Type)
				}
				scratch := aligned(task.Scratch * p.Threads())
				for b.Loop() {
					if err := p.Run(nil, task, scratch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(task.Tiles), "tiles")
			})
		}
	}
}

// BenchmarkProduct multiplies through the pool, with a right matrix that
// changes and with a packed one.
func BenchmarkProduct(b *testing.B) {
	for _, size := range [][3]int{{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {128, 768, 768}, {128, 3072, 768}, {1, 3072, 768}, {64, 3136, 576}} {
		m, n, k := size[0], size[1], size[2]
		c := call(b, "matmul", nil, 1, random(dtype.F32, 1, -1, 1, m, k), random(dtype.F32, 2, -1, 1, k, n))
		c.Out[0].Data = emptyData(c.Out[0].Type)
		for _, packed := range []bool{false, true} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%dx%dx%d/packed=%v/threads=%d", m, n, k, packed, threads), func(b *testing.B) {
					p := NewPool(threads)
					defer p.Close()
					own := *c
					own.In = append([]op.Arg{}, c.In...)
					task, err := BindConstants(&own, Constants{Is: func(i int) bool { return packed && i == 1 }})
					if err != nil {
						b.Fatal(err)
					}
					if packed {
						panels := aligned(task.Forms[1].Bytes)
						task.Forms[1].Pack(panels, own.In[1].Data)
						own.In[1].Data = panels
					}
					scratch := aligned(task.Scratch * p.Threads())
					for b.Loop() {
						if err := p.Run(nil, task, scratch); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(2*float64(m*n*k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
