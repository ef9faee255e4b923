package kernel

import "math"

type rowCode struct {
	bytes int // of a vector

	// long computes the functions of a few instructions on rows from longRow elements on, which tend to come from memory: 64 bytes at a
	// time are read from there more slowly than 32, and computing is no matter. nil: this code does.
	long *rowCode

	add, sub, mul, div, minimum, maximum                                           rowFunc2
	addScalar, subScalar, mulScalar, divScalar, subFrom, divInto, leakyRelu, swish rowFuncS
	clip, affine, hardSigmoid, elu, expScale                                       rowFuncST
	relu, hardSwish, sqrt, abs, neg, round, floor, ceil, softsign                  rowFunc
	cube, threeQuarters, exp, log, sigmoid, silu, tanh, erf, gelu, geluTanh        rowFunc
	softplus, mish                                                                 rowFunc

	streamed map[UnaryOp]rowFunc // those that write past the caches themselves: storing while they compute costs them nothing

	sum                            func(n int, x *float32) float64
	squares                        func(n int, x *float32, s float32) float64
	max                            func(n int, x *float32, s float32) float32
	min                            func(n int, x *float32, s float32) float32
	softmaxRow                     rowFunc
	expSum                         func(n int, dst, x *float32, s float32) float32
	softmaxNext, softmaxNextStream func(n int, dst, from, to, x, later *float32, s, t float32) (top, sum float32)
	expOnlySum                     func(n int, x *float32, s float32) float32
	expSumColumns                  func(n int, dst, x, peak, sum *float32)
	deviations, deviationsAhead    func(n int, x *float32, s float32) (sum, squares float32)
	normScale                      func(n int, dst, x, y *float32, s, t float32)
	normBias, normBiasStream       func(n int, dst, x, y, z *float32, s, t float32)
	normNext                       func(n int, dst, x, y, z, next *float32, s, t, about float32) (sum, squares float32)
	stream                         rowFunc
	fence                          func()
	transpose                      func(n int, dst, src *uint32, dstStep, srcStep int)
}

type (
	rowFunc   func(n int, dst, x *float32)
	rowFunc2  func(n int, dst, x, y *float32)
	rowFuncS  func(n int, dst, x *float32, s float32)
	rowFuncST func(n int, dst, x *float32, s, t float32)
)

var rows256 = rowCode{
	bytes: 32,
	add:   add256, sub: sub256, mul: mul256, div: div256, minimum: minimum256, maximum: maximum256,
	addScalar: addScalar256, subScalar: subScalar256, mulScalar: mulScalar256, divScalar: divScalar256, subFrom: subFrom256, divInto: divInto256,
	leakyRelu: leakyRelu256, swish: swish256, clip: clip256, affine: affine256, hardSigmoid: hardSigmoid256, elu: elu256,
	expScale: expScale256, relu: relu256, hardSwish: hardSwish256, sqrt: sqrt256, abs: abs256, neg: neg256,
	round: round256, floor: floor256, ceil: ceil256, softsign: softsign256, cube: cube256, threeQuarters: threeQuarters256, exp: exp256,
	log: log256, sigmoid: sigmoid256, silu: silu256, tanh: tanh256, erf: erf256, gelu: gelu256,
	geluTanh: geluTanh256, softplus: softplus256, mish: mish256, sum: sum256, squares: squares256, max: max256,
	min: min256, softmaxRow: softmaxRow256, softmaxNext: softmaxNext256, softmaxNextStream: softmaxNextStream256, expSum: expSum256, expOnlySum: expOnlySum256, expSumColumns: expSumColumns256,
	deviations: deviations256, deviationsAhead: deviationsAhead256, normScale: normScale256, normBias: normBias256, normBiasStream: normBiasStream256, normNext: normNext256, stream: stream256, fence: fence256, transpose: transpose256,
	streamed: map[UnaryOp]rowFunc{
		Exp: expStream256, Log: logStream256, Sigmoid: sigmoidStream256, Silu: siluStream256, Tanh: tanhStream256,
		Erf: erfStream256, Gelu: geluStream256, GeluTanh: geluTanhStream256, Softplus: softplusStream256, Mish: mishStream256,
	},
}

var rows512 = rowCode{
	bytes: 64, long: &rows256,
	add: add512, sub: sub512, mul: mul512, div: div512, minimum: minimum512, maximum: maximum512,
	addScalar: addScalar512, subScalar: subScalar512, mulScalar: mulScalar512, divScalar: divScalar512, subFrom: subFrom512, divInto: divInto512,
	leakyRelu: leakyRelu512, swish: swish512, clip: clip512, affine: affine512, hardSigmoid: hardSigmoid512, elu: elu512,
	expScale: expScale512, relu: relu512, hardSwish: hardSwish512, sqrt: sqrt512, abs: abs512, neg: neg512,
	round: round512, floor: floor512, ceil: ceil512, softsign: softsign512, cube: cube512, threeQuarters: threeQuarters512, exp: exp512,
	log: log512, sigmoid: sigmoid512, silu: silu512, tanh: tanh512, erf: erf512, gelu: gelu512,
	geluTanh: geluTanh512, softplus: softplus512, mish: mish512, sum: sum512, squares: squares512, max: max512,
	min: min512, softmaxRow: softmaxRow512, softmaxNext: softmaxNext512, softmaxNextStream: softmaxNextStream512, expSum: expSum512, expOnlySum: expOnlySum512, expSumColumns: expSumColumns512,
	deviations: deviations512, deviationsAhead: deviationsAhead512, normScale: normScale512, normBias: normBias512, normBiasStream: normBiasStream512, normNext: normNext512, stream: stream256, fence: fence256, transpose: transpose512,
	streamed: map[UnaryOp]rowFunc{
		Exp: expStream512, Log: logStream512, Sigmoid: sigmoidStream512, Silu: siluStream512, Tanh: tanhStream512,
		Erf: erfStream512, Gelu: geluStream512, GeluTanh: geluTanhStream512, Softplus: softplusStream512, Mish: mishStream512,
	},
}

const longRow = 1 << 10

// forRow returns the code for functions of a few instructions on n elements.
func (v *rowCode) forRow(n int) *rowCode {
	if v.long != nil && n >= longRow {
		return v.long
	}
	return v
}

func (v *rowCode) install() {
	v.installUnary()
	v.installBinary()
	v.installRows()
}

func (v *rowCode) installUnary() {
	for op, f := range map[UnaryOp]rowFunc{
		Sqrt: v.sqrt, Round: v.round, Floor: v.floor, Ceil: v.ceil, Softsign: v.softsign, Exp: v.exp, Log: v.log, Sigmoid: v.sigmoid,
		Silu: v.silu, Tanh: v.tanh, Erf: v.erf, Gelu: v.gelu, GeluTanh: v.geluTanh, Softplus: v.softplus, Mish: v.mish,
	} {
		unaryRow[op] = func(dst, src []float32, _, _ float32) { f.run(dst, src) }
	}
	for op, f := range v.streamed {
		unaryStream[op] = func(dst, src []float32) bool {
			if !v.isWhole(dst, 0) {
				return false
			}
			f.run(dst, src)
			return true
		}
	}
	unaryRow[Swish] = func(dst, src []float32, a, _ float32) { v.swish.run(dst, src, a) }
	unaryRow[Elu] = func(dst, src []float32, a, _ float32) { v.elu.run(dst, src, a, 1) }
	unaryRow[Selu] = func(dst, src []float32, a, b float32) { v.elu.run(dst, src, a*b, b) }
	unaryRow[Relu] = func(dst, src []float32, _, _ float32) { v.forRow(len(dst)).relu.run(dst, src) }
	unaryRow[HardSwish] = func(dst, src []float32, _, _ float32) { v.forRow(len(dst)).hardSwish.run(dst, src) }
	unaryRow[Abs] = func(dst, src []float32, _, _ float32) { v.forRow(len(dst)).abs.run(dst, src) }
	unaryRow[Neg] = func(dst, src []float32, _, _ float32) { v.forRow(len(dst)).neg.run(dst, src) }
	unaryRow[Affine] = func(dst, src []float32, a, b float32) { v.forRow(len(dst)).affine.run(dst, src, a, b) }
	unaryRow[HardSigmoid] = func(dst, src []float32, a, b float32) { v.forRow(len(dst)).hardSigmoid.run(dst, src, a, b) }
	unaryRow[LeakyRelu] = func(dst, src []float32, a, _ float32) { v.forRow(len(dst)).leakyRelu.run(dst, src, a) }
	unaryRow[Reciprocal] = func(dst, src []float32, _, _ float32) { v.divInto.run(dst, src, 1) }
	unaryRow[Clip] = func(dst, src []float32, a, b float32) {
		if a != a || b != b {
			clipRow(dst, src, a, b)
			return
		}
		v.forRow(len(dst)).clip.run(dst, src, a, b)
	}
	unaryRow[PowScalar] = func(dst, src []float32, a, b float32) {
		switch a {
		case 2:
			v.mul.run(dst, src, src)
		case 3:
			v.cube.run(dst, src)
		case -1:
			v.divInto.run(dst, src, 1)
		case 0.5:
			v.root(v.sqrt, dst, src, func(r float32) float32 { return r }, a)
		case 0.75: // of local response normalisations
			v.root(v.threeQuarters, dst, src, func(r float32) float32 { return r * root32(r) }, a)
		default:
			powScalarRow(dst, src, a, b)
		}
	}
}

// root computes powers that are made of square roots. For numbers that are not positive they are not, so a piece that has some goes
// number by number; after gives the power from the root, to the same bits as f does.
func (v *rowCode) root(f rowFunc, dst, src []float32, after func(r float32) float32, a float32) {
	dst = dst[:len(src)]
	for len(src) > 0 {
		n := min(len(src), sumElements)
		if v.min(n, &src[0], 1) > 0 {
			f(n, &dst[0], &src[0])
		} else {
			for i, x := range src[:n] {
				if x > 0 {
					dst[i] = after(root32(x))
				} else {
					dst[i] = float32(math.Pow(float64(x), float64(a)))
				}
			}
		}
		dst, src = dst[n:], src[n:]
	}
}

func root32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func (v *rowCode) installBinary() {
	binaryRowVV = func(op BinaryOp, dst, a, b []float32) {
		v := v.forRow(len(dst))
		switch op {
		case Add:
			v.add.run(dst, a, b)
		case Sub:
			v.sub.run(dst, a, b)
		case Mul:
			v.mul.run(dst, a, b)
		case Div:
			v.div.run(dst, a, b)
		case Min:
			v.minimum.run(dst, a, b)
		case Max:
			v.maximum.run(dst, a, b)
		default:
			portableBinaryVV(op, dst, a, b)
		}
	}
	binaryRowVS = func(op BinaryOp, dst, a []float32, s float32) {
		v := v.forRow(len(dst))
		switch op {
		case Add:
			v.addScalar.run(dst, a, s)
		case Sub:
			v.subScalar.run(dst, a, s)
		case Mul:
			v.mulScalar.run(dst, a, s)
		case Div:
			v.divScalar.run(dst, a, s)
		case Pow:
			unaryRow[PowScalar](dst, a, s, 0)
		case PRelu:
			v.leakyRelu.run(dst, a, s)
		default:
			portableBinaryVS(op, dst, a, s)
		}
	}
	binaryRowSV = func(op BinaryOp, dst []float32, s float32, b []float32) {
		v := v.forRow(len(dst))
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
