package quantised_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// intConvWants are the results that the reference computed, by case: every
// variant is held against the same ones.
var intConvWants sync.Map

func wantOfIntConv(key string, compute func() []float64) []float64 {
	if want, ok := intConvWants.Load(key); ok {
		return want.([]float64)
	}
	want, _ := intConvWants.LoadOrStore(key, compute())
	return want.([]float64)
}

func intConvs[X, W quantised.Byte](t *testing.T, v *kernel.Variant) {
	for _, c := range []quantised.IntConv{
		{Batch: 2, Group: 1, Channels: 3, Filters: 4, In: []int{6, 5}, Out: []int{6, 3}, Kernel: []int{3, 2}, Stride: []int{1, 2}, Dilation: []int{1, 1}, Pad: []int{1, 0}},
		{Batch: 1, Group: 3, Channels: 2, Filters: 2, In: []int{9}, Out: []int{4}, Kernel: []int{3}, Stride: []int{2}, Dilation: []int{2}, Pad: []int{2}},
		{Batch: 1, Group: 1, Channels: 2, Filters: 3, In: []int{1}, Out: []int{1}, Kernel: []int{3}, Stride: []int{1}, Dilation: []int{1}, Pad: []int{2}}, // taps further out than a row is long
		{Batch: 2, Group: 1, Channels: 19, Filters: 33, In: []int{7, 8}, Out: []int{7, 8}, Kernel: []int{1, 1}, Stride: []int{1, 1}, Dilation: []int{1, 1}, Pad: []int{0, 0}},
		{Batch: 1, Group: 1, Channels: 3, Filters: 20, In: []int{23, 37}, Out: []int{12, 19}, Kernel: []int{7, 7}, Stride: []int{2, 2}, Dilation: []int{1, 1}, Pad: []int{3, 3}},
		{Batch: 1, Group: 2, Channels: 5, Filters: 130, In: []int{3, 9, 40}, Out: []int{3, 9, 38}, Kernel: []int{3, 3, 3}, Stride: []int{1, 1, 1}, Dilation: []int{1, 1, 2}, Pad: []int{1, 1, 1}},
		{Batch: 1, Group: 1, Channels: 2, Filters: 3, In: []int{2, 3, 2, 5}, Out: []int{2, 3, 2, 5}, Kernel: []int{1, 3, 1, 3}, Stride: []int{1, 1, 1, 1}, Dilation: []int{1, 1, 1, 1}, Pad: []int{0, 1, 0, 1}},
		{Batch: 1, Group: 1, Channels: 2, Filters: 3, In: []int{2, 2}, Out: []int{5, 6}, Kernel: []int{2, 2}, Stride: []int{1, 1}, Dilation: []int{1, 1}, Pad: []int{3, 4}},
		{Batch: 1, Group: 1, Channels: 5, Filters: 3, In: []int{70, 1}, Out: []int{34, 1}, Kernel: []int{3, 1}, Stride: []int{2, 1}, Dilation: []int{1, 1}, Pad: []int{0, 0}},
		{Batch: 1, Group: 1, Channels: 6, Filters: 30, In: []int{1, 300}, Out: []int{1, 300}, Kernel: []int{1, 5}, Stride: []int{1, 1}, Dilation: []int{1, 2}, Pad: []int{0, 4}},
		{Batch: 1, Group: 1, Channels: 2, Filters: 3, In: []int{0, 4}, Out: []int{2, 4}, Kernel: []int{1, 1}, Stride: []int{1, 1}, Dilation: []int{1, 1}, Pad: []int{1, 0}},
		{Batch: 2, Group: 1, Channels: 2, Filters: 3, In: []int{3, 4}, Out: []int{0, 4}, Kernel: []int{4, 1}, Stride: []int{1, 1}, Dilation: []int{1, 1}, Pad: []int{0, 0}},
		// Tiles of several depthwise planes that are smaller than a vector.
		{Batch: 4, Group: 12, Channels: 1, Filters: 1, In: []int{8}, Out: []int{3}, Kernel: []int{1}, Stride: []int{3}, Dilation: []int{1}, Pad: []int{0}},
		{Batch: 3, Group: 20, Channels: 1, Filters: 1, In: []int{2, 2}, Out: []int{2, 2}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Dilation: []int{1, 1}, Pad: []int{1, 1}},
		{Batch: 1, Group: 2, Channels: 1, Filters: 1, In: []int{40, 41}, Out: []int{40, 41}, Kernel: []int{3, 3}, Stride: []int{1, 1}, Dilation: []int{1, 1}, Pad: []int{1, 1}},
	} {
		for kind := range 3 {
			intConvCase[X, W](t, v, c, false, kind)
		}
		intConvCase[X, W](t, v, c, true, 0)
	}
}

// drawnIntConvs draws convolutions of all sorts.
func drawnIntConvs(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(78)
	for range 100 {
		rank := 1 + r.IntN(3)
		c := quantised.IntConv{Batch: 1 + r.IntN(2), Group: 1 + r.IntN(3), Channels: 1 + r.IntN(9), Filters: 1 + r.IntN(34)}
		for range rank {
			in, k, stride, dilation := 1+r.IntN(30/(rank*rank)+6), 1+r.IntN(7-rank), 1+r.IntN(3), 1+r.IntN(3)
			pad := r.IntN(2 * k)
			out := max(0, (in+pad+r.IntN(2*k)-(k-1)*dilation-1)/stride+1)
			c.In, c.Out, c.Kernel, c.Stride = append(c.In, in), append(c.Out, out), append(c.Kernel, k), append(c.Stride, stride)
			c.Dilation, c.Pad = append(c.Dilation, dilation), append(c.Pad, pad)
		}
		if r.IntN(4) == 0 {
			c.Group, c.Channels, c.Filters = 1+r.IntN(20), 1, 1
		}
		intConvCaseOf(t, v, r, c)
	}
	for range 60 { // of one channel, on larger pictures
		c := quantised.IntConv{Batch: 1 + r.IntN(2), Group: 1 + r.IntN(12), Channels: 1, Filters: 1}
		for range 2 {
			in, k, stride, dilation := 1+r.IntN(70), 1+r.IntN(6), 1+r.IntN(3), 1+r.IntN(3)
			pad := r.IntN(k + 1)
			c.In, c.Out = append(c.In, in), append(c.Out, max(1, (in+2*pad-(k-1)*dilation-1)/stride+1))
			c.Kernel, c.Stride, c.Dilation, c.Pad = append(c.Kernel, k), append(c.Stride, stride), append(c.Dilation, dilation), append(c.Pad, pad)
		}
		intConvCaseOf(t, v, r, c)
	}
}

// intConvCaseOf compares a convolution of bytes of some kind.
func intConvCaseOf(t *testing.T, v *kernel.Variant, r *rand.Rand, c quantised.IntConv) {
	t.Helper()
	packed, kind := r.IntN(2) == 0, r.IntN(3)
	switch r.IntN(4) {
	case 0:
		intConvCase[int8, int8](t, v, c, packed, kind)
	case 1:
		intConvCase[uint8, uint8](t, v, c, packed, kind)
	case 2:
		intConvCase[int8, uint8](t, v, c, packed, kind)
	default:
		intConvCase[uint8, int8](t, v, c, packed, kind)
	}
}

// zerosOfFilters returns zeros of filters, of one kind or the other.
func zerosOfFilters[W quantised.Byte](n, kind int) (zeros []W, ints []int) {
	zeros, ints = randomBytes[W](n, 77)
	if kind == 0 {
		return zeros, ints
	}
	zeros = []W{5}
	if kind == 1 { // the one in the middle of the range, as most weights have it
		zeros[0] = 0
		if byteType[W]() == dtype.U8 {
			zeros[0] = ^W(0) << 7
		}
	}
	for i := range ints {
		ints[i] = int(zeros[0])
	}
	return zeros, ints
}

// intConvCase compares a convolution with the reference, with zeros of filters
// of a kind.
func intConvCase[X, W quantised.Byte](t *testing.T, v *kernel.Variant, c quantised.IntConv, packed bool, kind int) {
	t.Helper()
	taps, filters := ref.Size(c.Kernel), c.Group*c.Filters
	x, xi := randomBytes[X](c.Batch*c.Group*c.Channels*ref.Size(c.In), 75)
	w, wi := randomBytes[W](filters*c.Channels*taps, 76)
	zw, zwi := zerosOfFilters[W](filters, kind)
	bias := make([]int32, filters)
	for i := range bias {
		bias[i] = int32(i * 100)
	}
	zx := []X{3}
	// The reference convolves in float64, where these sums are exact.
	fx, fw := make([]float32, len(x)), make([]float32, len(w))
	for i, v := range xi {
		fx[i] = float32(v - 3)
	}
	for i, v := range wi {
		fw[i] = float32(v - zwi[i/(c.Channels*taps)])
	}
	fb := make([]float32, filters)
	for i := range fb {
		fb[i] = float32(bias[i])
	}
	conv := ref.Conv{Batch: c.Batch, Group: c.Group, InChannels: c.Group * c.Channels, OutChannels: filters,
		Window:   ref.Window{In: c.In, Kernel: c.Kernel, Stride: c.Stride, Dilation: c.Dilation, PadBegin: c.Pad, Out: c.Out},
		Epilogue: ref.Epilogue{Bias: "row", Beta: 1}}
	want := wantOfIntConv(fmt.Sprintf("%T %T %d %+v", x, w, kind, conv), func() []float64 { return conv.Run(fx, fw, fb, nil) })
	c.SignedX, c.SignedW = byteType[X]() == dtype.I8, byteType[W]() == dtype.I8
	c.Prepare(v)
	s := kerneltest.NewSpace(t)
	px, pw, pzx, pzw, pb := kerneltest.In(s, "x", x), kerneltest.In(s, "w", w), kerneltest.In(s, "zero x", zx), kerneltest.In(s, "zero w", zw), kerneltest.In(s, "bias", bias)
	if panels, ok := c.FilterPanels(v); ok && packed {
		form, back := kerneltest.Out[int32](s, "panels", panels.Bytes()/4), kerneltest.Out[W](s, "unpacked", len(w))
		panels.Pack(kerneltest.AsBytes(form), kerneltest.AsBytes(pw))
		panels.Unpack(kerneltest.AsBytes(back), kerneltest.AsBytes(form))
		if !slices.Equal(back, w) {
			t.Fatalf("%+v: unpacking gives other weights than were packed", c)
		}
		pw, c.PackedW = unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(form))), 4*len(form)), true
		c.Prepare(v)
	}
	dst, narrow, scratch := kerneltest.Out[int32](s, "dst", len(want)), kerneltest.Out[X](s, "narrow", len(want)), kerneltest.Out[int32](s, "scratch", c.ScratchBytes()/4)
	scales, y, zero := make([]float32, filters), []float32{300}, []X{7}
	for i := range scales {
		scales[i] = float32(i+1) / 8
	}
	requant := quantised.Requant{A: numbersOf(dtype.F32, []float32{0.5}), B: numbersOf(dtype.F32, scales), Y: numbersOf(dtype.F32, y), Zero: numbersOf(byteType[X](), zero)}
	kerneltest.Backwards(c.Tiles(), func(i int) {
		quantised.IntConvTile(&c, i, kerneltest.AsBytes(dst), px, pw, numbersOf(byteType[X](), pzx), numbersOf(byteType[W](), pzw), pb, nil, scratch)
		quantised.IntConvTile(&c, i, kerneltest.AsBytes(narrow), px, pw, numbersOf(byteType[X](), pzx), numbersOf(byteType[W](), pzw), pb, &requant, scratch)
	})
	s.Check()
	least, most := quantised.IntRange(byteType[X]())
	area := ref.Size(c.Out)
	for i, w := range want {
		k := 0.5 * scales[i/area%filters] / 300
		if q := ref.Quantize(float32(w)*k, 1, 7, least, most); float64(narrow[i]) != q {
			t.Fatalf("%+v: element %d: got %d requantised, want %v", c, i, narrow[i], q)
		}
	}
	for i, w := range want {
		if float64(dst[i]) != w {
			t.Fatalf("%+v: element %d: got %d, want %v", c, i, dst[i], w)
		}
	}
}
