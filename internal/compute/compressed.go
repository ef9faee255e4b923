package compute

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// leastCompressed is from how many bytes of panels on they are compressed.
// Small matrices stay in a cache, where compression would save no time.
const leastCompressed = 64 << 10

// compressedForm is the form of the panels of a product's right matrix when
// they are compressed. It does not depend on the sizes of the left matrix.
func compressedForm(v *kernel.Variant, g gemm.Gemm) Form {
	z := &gemm.CompressedB{N: g.N, K: g.K, TransB: g.TransB, Alpha: g.Alpha}
	z.Prepare(v)
	measure := func(index, src []byte) int {
		b := view[float32](src)
		inParts(z, func(part int, scratch []float32) { z.Measure(part, index, b, scratch) })
		return z.Place(index)
	}
	f := Form{
		Name:    fmt.Sprintf("compressed panels of %dx%d%s", g.K, g.N, sourceOf(g)),
		Measure: func(src []byte) int { return measure(make([]byte, z.IndexBytes()), src) },
		Pack: func(dst, src []byte) {
			if n := measure(dst[:z.IndexBytes()], src); n != len(dst) {
				panic(fmt.Sprintf("BUG: compute: a weight is compressed into %d bytes after it was measured with %d", n, len(dst)))
			}
			b := view[float32](src)
			inParts(z, func(part int, scratch []float32) { z.Pack(part, dst, b, scratch) })
		},
	}
	if g.Alpha == 1 {
		f.Unpack = func(dst, src []byte) {
			b := view[float32](dst)
			inParts(z, func(part int, scratch []float32) { z.Unpack(part, b, src, scratch) })
		}
	}
	return f
}

// inParts runs f for all parts of a matrix, on every processor: the
// caller waits for it, and no run is under way that it would disturb.
func inParts(z *gemm.CompressedB, f func(part int, scratch []float32)) {
	var next atomic.Int64
	work := func() {
		scratch := make([]float32, z.ScratchFloats())
		for part := int(next.Add(1)) - 1; part < z.Parts(); part = int(next.Add(1)) - 1 {
			f(part, scratch)
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), z.Parts()) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}
