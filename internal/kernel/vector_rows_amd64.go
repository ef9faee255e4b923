package kernel

import "math"

type rowCode struct {
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
}

type (
	rowFunc   func(n int, dst, x *float32)
	rowFunc2  func(n int, dst, x, y *float32)
	rowFuncS  func(n int, dst, x *float32, s float32)
	rowFuncST func(n int, dst, x *float32, s, t float32)
)

var rows256 = rowCode{
	add: add256, sub: sub256, mul: mul256, div: div256,
	addScalar: addScalar256, subScalar: subScalar256, mulScalar: mulScalar256, divScalar: divScalar256,
	subFrom: subFrom256, divInto: divInto256,
	relu: relu256, hardSwish: hardSwish256, sqrt: sqrt256,
	exp: exp256, sigmoid: sigmoid256, silu: silu256, tanh: tanh256, erf: erf256, gelu: gelu256, geluTanh: geluTanh256, mish: mish256,
	leakyRelu: leakyRelu256, clip: clip256, affine: affine256, hardSigmoid: hardSigmoid256,
	sum: sum256, squares: squares256, expOnlySum: expOnlySum256, max: max256, min: min256, expSum: expSum256,
	normScale: normScale256, normBias: normBias256,
}

var rows512 = rowCode{
	add: add512, sub: sub512, mul: mul512, div: div512,
	addScalar: addScalar512, subScalar: subScalar512, mulScalar: mulScalar512, divScalar: divScalar512,
	subFrom: subFrom512, divInto: divInto512,
	relu: relu512, hardSwish: hardSwish512, sqrt: sqrt512,
	exp: exp512, sigmoid: sigmoid512, silu: silu512, tanh: tanh512, erf: erf512, gelu: gelu512, geluTanh: geluTanh512, mish: mish512,
	leakyRelu: leakyRelu512, clip: clip512, affine: affine512, hardSigmoid: hardSigmoid512,
	sum: sum512, squares: squares512, expOnlySum: expOnlySum512, max: max512, min: min512, expSum: expSum512,
	normScale: normScale512, normBias: normBias512,
}

func (v *rowCode) install() {
	v.installUnary()
	v.installBinary()
	v.installRows()
}

func (v *rowCode) installUnary() {
	for op, f := range map[UnaryOp]rowFunc{
		Relu: v.relu, HardSwish: v.hardSwish, Sqrt: v.sqrt, Exp: v.exp, Sigmoid: v.sigmoid, Silu: v.silu, Tanh: v.tanh, Erf: v.erf, Gelu: v.gelu,
		GeluTanh: v.geluTanh, Mish: v.mish,
	} {
		unaryRow[op] = func(dst, src []float32, _, _ float32) { f.run(dst, src) }
	}
	for op, f := range map[UnaryOp]rowFuncST{Affine: v.affine, HardSigmoid: v.hardSigmoid} {
		unaryRow[op] = func(dst, src []float32, a, b float32) { f.run(dst, src, a, b) }
	}
	unaryRow[LeakyRelu] = func(dst, src []float32, a, _ float32) { v.leakyRelu.run(dst, src, a) }
	unaryRow[Reciprocal] = func(dst, src []float32, _, _ float32) { v.divInto.run(dst, src, 1) }
	unaryRow[Clip] = func(dst, src []float32, a, b float32) {
		if a != a || b != b {
			clipRow(dst, src, a, b)
			return
		}
		v.clip.run(dst, src, a, b)
	}
	unaryRow[PowScalar] = func(dst, src []float32, a, b float32) {
		switch a {
		case 2:
			v.mul.run(dst, src, src)
		case -1:
			v.divInto.run(dst, src, 1)
		default:
			powScalarRow(dst, src, a, b)
		}
	}
}

func (v *rowCode) installBinary() {
	binaryRowVV = func(op BinaryOp, dst, a, b []float32) {
		switch op {
		case Add:
			v.add.run(dst, a, b)
		case Sub:
			v.sub.run(dst, a, b)
		case Mul:
			v.mul.run(dst, a, b)
		case Div:
			v.div.run(dst, a, b)
		default:
			portableBinaryVV(op, dst, a, b)
		}
	}
	binaryRowVS = func(op BinaryOp, dst, a []float32, s float32) {
		switch op {
		case Add:
			v.addScalar.run(dst, a, s)
		case Sub:
			v.subScalar.run(dst, a, s)
		case Mul:
			v.mulScalar.run(dst, a, s)
		case Div:
			v.divScalar.run(dst, a, s)
		default:
			portableBinaryVS(op, dst, a, s)
		}
	}
	binaryRowSV = func(op BinaryOp, dst []float32, s float32, b []float32) {
		switch op {
		case Add:
			v.addScalar.run(dst, b, s)
		case Sub:
			v.subFrom.run(dst, b, s)
		case Mul:
			v.mulScalar.run(dst, b, s)
		case Div:
			v.divInto.run(dst, b, s)
		default:
			portableBinarySV(op, dst, s, b)
		}
	}
}

func (f rowFunc) run(dst, x []float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0])
		dst, x = dst[n:], x[n:]
	}
}

func (f rowFunc2) run(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0], &y[0])
		dst, x, y = dst[n:], x[n:], y[n:]
	}
}

func (f rowFuncS) run(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0], s)
		dst, x = dst[n:], x[n:]
	}
}

func (f rowFuncST) run(dst, x []float32, s, t float32) {
	x = x[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), asmElements)
		f(n, &dst[0], &x[0], s, t)
		dst, x = dst[n:], x[n:]
	}
}

func (v *rowCode) installRows() {
	rowSum = func(x []float32) (sum float64) {
		for ; len(x) > asmElements; x = x[asmElements:] {
			sum += v.sum(asmElements, &x[0])
		}
		if len(x) > 0 {
			sum += v.sum(len(x), &x[0])
		}
		return sum
	}
	rowSquares = func(x []float32, about float32) float64 { return sumRow(v.squares, x, about) }
	rowMax = func(x []float32) float32 { return peakRow(v.max, x, float32(math.Inf(-1))) }
	rowMin = func(x []float32) float32 { return peakRow(v.min, x, float32(math.Inf(1))) }
	rowSoftmax = v.softmax
	rowNorm = v.norm
}

func sumRow(f func(n int, x *float32, s float32) float64, x []float32, s float32) (sum float64) {
	for len(x) > 0 {
		n := min(len(x), asmElements)
		sum += f(n, &x[0], s)
		x = x[n:]
	}
	return sum
}

func peakRow(f func(n int, x *float32, s float32) float32, x []float32, peak float32) float32 {
	for len(x) > 0 {
		n := min(len(x), asmElements)
		peak = f(n, &x[0], peak)
		x = x[n:]
	}
	return peak
}

func (v *rowCode) softmax(dst, src []float32, log bool) {
	peak := rowMax(src)
	if log {
		shift := float32(math.Log(sumRow(v.expOnlySum, src, peak)))
		v.subScalar.run(dst, src, peak)
		v.subScalar.run(dst, dst, shift)
		return
	}
	sum, to := 0.0, dst[:len(src)]
	for len(src) > 0 {
		n := min(len(src), asmElements)
		sum += v.expSum(n, &to[0], &src[0], peak)
		src, to = src[n:], to[n:]
	}
	v.mulScalar.run(dst, dst, float32(1/sum))
}

func (v *rowCode) norm(dst, src, scale, bias []float32, mean, inv float32) {
	dst, scale = dst[:len(src)], scale[:len(src)]
	for len(src) > 0 {
		n := min(len(src), asmElements)
		if bias == nil {
			v.normScale(n, &dst[0], &src[0], &scale[0], mean, inv)
		} else {
			_ = bias[n-1]
			v.normBias(n, &dst[0], &src[0], &scale[0], &bias[0], mean, inv)
			bias = bias[n:]
		}
		src, dst, scale = src[n:], dst[n:], scale[n:]
	}
}
