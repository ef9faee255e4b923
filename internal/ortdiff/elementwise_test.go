package ortdiff_test

import "github.com/tenure-go/tenure/dtype"

var (
	floats  = []dtype.DType{dtype.F32, dtype.F32, dtype.F32, dtype.F64, dtype.F16, dtype.BF16}
	ints    = []dtype.DType{dtype.I64, dtype.I32, dtype.I8, dtype.I16}
	uints   = []dtype.DType{dtype.U8, dtype.U16, dtype.U32, dtype.U64}
	numbers = append(append(append([]dtype.DType{dtype.F32, dtype.F32}, floats...), ints...), uints...)
	wide    = append([]dtype.DType{dtype.I32, dtype.I64, dtype.U32, dtype.U64}, floats...)
	signed  = append(append([]dtype.DType{}, floats...), ints...)
	all     = append([]dtype.DType{dtype.Bool, dtype.C64}, numbers...)
)

var unaries = map[string]func(*drawer){
	"Acos": unary(floats, nil), "Acosh": unary(floats, nil), "Asin": unary(floats, nil), "Asinh": unary(floats, nil),
	"Atan": unary(floats, nil), "Atanh": unary(floats, nil), "Cos": unary(floats, nil), "Cosh": unary(floats, nil),
	"Sin": unary(floats, nil), "Sinh": unary(floats, nil), "Tan": unary(floats, nil), "Tanh": unary(floats, nil),
	"Exp": unary(floats, nil), "Log": unary(floats, nil), "Erf": unary(floats, nil), "Sqrt": unary(floats, nil),
	"Sigmoid": unary(floats, nil), "Softplus": unary(floats, nil), "Softsign": unary(floats, nil), "Mish": unary(floats, nil),
	"HardSwish": unary(floats, nil), "Reciprocal": unary(floats, nil), "Round": unary(floats, nil), "Ceil": unary(floats, nil),
	"Floor": unary(floats, nil), "IsNaN": unary(floats, nil), "Abs": unary(numbers, nil), "Neg": unary(signed, nil),
	"Sign": unary(numbers, nil), "Relu": unary(signed, nil), "Not": unary([]dtype.DType{dtype.Bool}, nil),
	"BitwiseNot": unary(append(append([]dtype.DType{}, ints...), uints...), nil), "Identity": unary(moved, nil), "Size": unary(moved, nil),
	"Elu": unary(floats, alpha("alpha")), "LeakyRelu": unary(floats, alpha("alpha")), "Celu": unary(floats, alpha("alpha")),
	"Selu": unary(floats, alpha("alpha", "gamma")), "HardSigmoid": unary(floats, alpha("alpha", "beta")),
	"ThresholdedRelu": unary(floats, alpha("alpha")), "Swish": unary(floats, alpha("alpha")),
	"Shrink": unary(numbers, alpha("bias", "lambd")),
	"Gelu":   unary(floats, func(d *drawer) { d.maybe("approximate", pick(d, "none", "tanh")) }),
	"IsInf": unary(floats, func(d *drawer) {
		d.maybe("detect_negative", d.chance(0.5))
		d.maybe("detect_positive", d.chance(0.5))
	}),
	"Shape": unary(moved, func(d *drawer) {
		if d.m.opset >= 15 {
			d.maybe("start", d.between(-5, 5))
			d.maybe("end", d.between(-5, 5))
		}
	}),
}

func unary(types []dtype.DType, attrs func(d *drawer)) func(*drawer) {
	return func(d *drawer) {
		d.node("?")
		d.in(pick(d, types...), d.dims(0, 4)...)
		if attrs != nil {
			attrs(d)
		}
		d.outs(1)
	}
}

func alpha(names ...string) func(d *drawer) {
	return func(d *drawer) {
		for _, name := range names {
			d.maybe(name, pick(d, 0.1, 0.5, 1, 1.7, 2, 3))
		}
	}
}

func init() {
	for name, g := range unaries {

		generators[name] = func(d *drawer) {
			g(d)
			d.n.op = name
		}
	}
	elementwiseTolerances()
}

func elementwiseTolerances() {
	for _, name := range []string{"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan", "Tanh", "Exp", "Log", "Erf",
		"Sigmoid", "Softplus", "Softsign", "Mish", "Elu", "Celu", "Selu", "Swish", "Gelu", "HardSwish", "HardSigmoid", "Reciprocal", "Sqrt", "LeakyRelu", "Shrink"} {
		tolerances[name] = tolerance{4, 4, 0, "polynomials of their own on both sides"}
	}
}
