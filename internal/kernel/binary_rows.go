package kernel

import "math"

// The float32 row loops of BinaryF32: both operands contiguous, or one of them a scalar.

func binaryRowVV(v *Variant, op BinaryOp, dst, a, b []float32) {
	if l := &v.Rows.BinaryVV[op]; l.Short != nil {
		l.run(dst, a, b)
		return
	}
	portableBinaryVV(op, dst, a, b)
}

func binaryRowVS(v *Variant, op BinaryOp, dst, a []float32, s float32) {
	if l := &v.Rows.BinaryVS[op]; l.Short != nil {
		l.run(dst, a, s)
		return
	}
	if op == Pow {
		powRow(v, dst, a, s)
		return
	}
	portableBinaryVS(op, dst, a, s)
}

func binaryRowSV(v *Variant, op BinaryOp, dst []float32, s float32, b []float32) {
	if l := &v.Rows.BinarySV[op]; l.Short != nil {
		l.run(dst, b, s)
		return
	}
	portableBinarySV(op, dst, s, b)
}

func portableBinaryVV(op BinaryOp, dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case Add:
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	case Sub:
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	case Mul:
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	case Div:
		for i := range dst {
			dst[i] = a[i] / b[i]
		}
	case Min:
		for i := range dst {
			dst[i] = min(a[i], b[i])
		}
	case Max:
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	default:
		r := evenRun(len(dst))
		floatStrided(op, &r, dst, a, b)
	}
}

func portableBinaryVS(op BinaryOp, dst, a []float32, s float32) {
	a = a[:len(dst)]
	switch op {
	case Add:
		for i := range dst {
			dst[i] = a[i] + s
		}
	case Sub:
		for i := range dst {
			dst[i] = a[i] - s
		}
	case Mul:
		for i := range dst {
			dst[i] = a[i] * s
		}
	case Div:
		for i := range dst {
			dst[i] = a[i] / s
		}
	case Min:
		for i := range dst {
			dst[i] = min(a[i], s)
		}
	case Max:
		for i := range dst {
			dst[i] = max(a[i], s)
		}
	case Mod:
		for i := range dst {
			dst[i] = floatMod(a[i], s)
		}
	case FMod:
		for i := range dst {
			dst[i] = float32(math.Mod(float64(a[i]), float64(s)))
		}
	case Pow:
		powScalarRow(dst, a, s, 0)
	case PRelu:
		leakyReluRow(dst, a, s, 0)
	default:
		Bug("%s is not defined on floats", op)
	}
}

func portableBinarySV(op BinaryOp, dst []float32, s float32, b []float32) {
	b = b[:len(dst)]
	switch op {
	case Add, Mul, Min, Max:
		portableBinaryVS(op, dst, b, s)
	case Sub:
		for i := range dst {
			dst[i] = s - b[i]
		}
	case Div:
		for i := range dst {
			dst[i] = s / b[i]
		}
	case Mod:
		for i := range dst {
			dst[i] = floatMod(s, b[i])
		}
	case FMod:
		for i := range dst {
			dst[i] = float32(math.Mod(float64(s), float64(b[i])))
		}
	case Pow:
		for i := range dst {
			dst[i] = float32(math.Pow(float64(s), float64(b[i])))
		}
	case PRelu:
		for i := range dst {
			v := s
			if s < 0 {
				v *= b[i]
			}
			dst[i] = v
		}
	default:
		Bug("%s is not defined on floats", op)
	}
}
