package elementwise

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// The float32 row loops of BinaryF32: both operands contiguous, or one of them
// a scalar.

func BinaryRowVV(v *kernel.Variant, op kernel.BinaryOp, dst, a, b []float32) {
	if l := &v.Rows.BinaryVV[op]; l.Short != nil {
		l.Run(dst, a, b)
		return
	}
	PortableBinaryVV(op, dst, a, b)
}

func BinaryRowVS(v *kernel.Variant, op kernel.BinaryOp, dst, a []float32, s float32) {
	if l := &v.Rows.BinaryVS[op]; l.Short != nil {
		l.Run(dst, a, s)
		return
	}
	if op == kernel.Pow {
		powRow(v, dst, a, s)
		return
	}
	portableBinaryVS(op, dst, a, s)
}

func binaryRowSV(v *kernel.Variant, op kernel.BinaryOp, dst []float32, s float32, b []float32) {
	if l := &v.Rows.BinarySV[op]; l.Short != nil {
		l.Run(dst, b, s)
		return
	}
	portableBinarySV(op, dst, s, b)
}

func PortableBinaryVV(op kernel.BinaryOp, dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case kernel.Add:
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	case kernel.Sub:
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	case kernel.Mul:
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	case kernel.Div:
		for i := range dst {
			dst[i] = a[i] / b[i]
		}
	case kernel.Min:
		for i := range dst {
			dst[i] = min(a[i], b[i])
		}
	case kernel.Max:
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	default:
		if formulaVV(op, dst, a, b) {
			return
		}
		r := kernel.EvenRun(len(dst))
		FloatStrided(op, &r, dst, a, b)
	}
}

func portableBinaryVS(op kernel.BinaryOp, dst, a []float32, s float32) {
	a = a[:len(dst)]
	switch op {
	case kernel.Add:
		for i := range dst {
			dst[i] = a[i] + s
		}
	case kernel.Sub:
		for i := range dst {
			dst[i] = a[i] - s
		}
	case kernel.Mul:
		for i := range dst {
			dst[i] = a[i] * s
		}
	case kernel.Div:
		for i := range dst {
			dst[i] = a[i] / s
		}
	case kernel.Min:
		for i := range dst {
			dst[i] = min(a[i], s)
		}
	case kernel.Max:
		for i := range dst {
			dst[i] = max(a[i], s)
		}
	case kernel.Mod:
		for i := range dst {
			dst[i] = floatMod(a[i], s)
		}
	case kernel.Fmod:
		for i := range dst {
			dst[i] = float32(math.Mod(float64(a[i]), float64(s)))
		}
	case kernel.Pow:
		powScalarRow(dst, a, s, 0)
	default:
		if !formulaVS(op, dst, a, s) {
			kernel.Bug("%s is not defined on floats", op)
		}
	}
}

func portableBinarySV(op kernel.BinaryOp, dst []float32, s float32, b []float32) {
	b = b[:len(dst)]
	switch op {
	case kernel.Add, kernel.Mul, kernel.Min, kernel.Max:
		portableBinaryVS(op, dst, b, s)
	case kernel.Sub:
		for i := range dst {
			dst[i] = s - b[i]
		}
	case kernel.Div:
		for i := range dst {
			dst[i] = s / b[i]
		}
	case kernel.Mod:
		for i := range dst {
			dst[i] = floatMod(s, b[i])
		}
	case kernel.Fmod:
		for i := range dst {
			dst[i] = float32(math.Mod(float64(s), float64(b[i])))
		}
	case kernel.Pow:
		for i := range dst {
			dst[i] = float32(math.Pow(float64(s), float64(b[i])))
		}
	default:
		if !formulaSV(op, dst, s, b) {
			kernel.Bug("%s is not defined on floats", op)
		}
	}
}
