package kernel

import "github.com/tenure-go/tenure/internal/cpu"

//go:generate go run -C gen . -out ..

// assembly is what one set of vector instructions offers: the generated functions, which take pointers and counts and check nothing. The
// files vector_*_amd64.go put them behind the dispatch points.
type assembly struct {
	nr                       int // two vectors
	tiles                    []gemmTileFunc
	axpy8, axpy1, dot4, dot1 gemvFunc
	patches                  patchesFunc

	add, sub, mul, div                         rowFunc2
	addScalar, subScalar, mulScalar, divScalar rowFuncS
	subFrom, divInto                           rowFuncS

	relu, hardSwish, sqrt                               rowFunc
	exp, sigmoid, silu, tanh, erf, gelu, geluTanh, mish rowFunc
	leakyRelu                                           rowFuncS
	clip, affine, hardSigmoid                           rowFuncST
	sum                                                 func(n int, x *float32) float64
	squares, expOnlySum                                 func(n int, x *float32, s float32) float64
	max, min                                            func(n int, x *float32, s float32) float32
	expSum                                              func(n int, dst, x *float32, s float32) float64
	normScale                                           func(n int, dst, x, y *float32, s, t float32)
	normBias                                            func(n int, dst, x, y, z *float32, s, t float32)
	taps                                                func(n int, dst, x, w *float32, rows, taps, dilation, gap int)
	taps3x3                                             func(n int, dst, x, w *float32, dilation, rowStep int)
}

type (
	gemmTileFunc func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, acc bool)
	patchesFunc  func(planes, rows int, dst *float32, step int, src *float32, at, rowStep, planeStep, lo, hi, n int)
	gemvFunc     func(n int, out, x, b *float32, ldb int)
	rowFunc      func(n int, dst, x *float32)
	rowFunc2     func(n int, dst, x, y *float32)
	rowFuncS     func(n int, dst, x *float32, s float32)
	rowFuncST    func(n int, dst, x *float32, s, t float32)
)

var assembly256 = assembly{
	nr: 16, tiles: gemmTiles256[:], axpy8: axpy8x256, axpy1: axpy1x256, dot4: dot4x256, dot1: dot1x256, patches: patches256,
	add: add256, sub: sub256, mul: mul256, div: div256,
	addScalar: addScalar256, subScalar: subScalar256, mulScalar: mulScalar256, divScalar: divScalar256,
	subFrom: subFrom256, divInto: divInto256,
	relu: relu256, hardSwish: hardSwish256, sqrt: sqrt256,
	exp: exp256, sigmoid: sigmoid256, silu: silu256, tanh: tanh256, erf: erf256, gelu: gelu256, geluTanh: geluTanh256, mish: mish256,
	leakyRelu: leakyRelu256, clip: clip256, affine: affine256, hardSigmoid: hardSigmoid256,
	sum: sum256, squares: squares256, expOnlySum: expOnlySum256, max: max256, min: min256, expSum: expSum256,
	normScale: normScale256, normBias: normBias256, taps: taps256, taps3x3: taps3x3x256,
}

var assembly512 = assembly{
	nr: 32, tiles: gemmTiles512[:], axpy8: axpy8x512, axpy1: axpy1x512, dot4: dot4x512, dot1: dot1x512, patches: patches512,
	add: add512, sub: sub512, mul: mul512, div: div512,
	addScalar: addScalar512, subScalar: subScalar512, mulScalar: mulScalar512, divScalar: divScalar512,
	subFrom: subFrom512, divInto: divInto512,
	relu: relu512, hardSwish: hardSwish512, sqrt: sqrt512,
	exp: exp512, sigmoid: sigmoid512, silu: silu512, tanh: tanh512, erf: erf512, gelu: gelu512, geluTanh: geluTanh512, mish: mish512,
	leakyRelu: leakyRelu512, clip: clip512, affine: affine512, hardSigmoid: hardSigmoid512,
	sum: sum512, squares: squares512, expOnlySum: expOnlySum512, max: max512, min: min512, expSum: expSum512,
	normScale: normScale512, normBias: normBias512, taps: taps512, taps3x3: taps3x3x512,
}

// machineVariants are those that this architecture adds to the portable one: what the processor has and TENURE_CPU allows.
func machineVariants() []variant {
	var all []variant
	if cpu.Level() >= cpu.AVX2 {
		all = append(all, variant{cpu.AVX2.String(), assembly256.install})
	}
	if cpu.Level() >= cpu.AVX512 {
		all = append(all, variant{cpu.AVX512.String(), assembly512.install})
	}
	return all
}

func (v *assembly) install() {
	installPortable()
	v.installGemm()
	v.installUnary()
	v.installBinary()
	v.installRows()
}
