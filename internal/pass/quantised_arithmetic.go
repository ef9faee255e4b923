package pass

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// mostRatio is the largest scale of an operand of a sum in quanta of the
// result: integers times larger ones leave too few bits of a float32 for the
// fraction.
const mostRatio = 4096

// arithmetic makes c the quantised sum, difference or product of two
// dequantised operands, or says why there is none.
func (q *quantiser) arithmetic(c, of *ir.Call, y *number) (why string) {
	a, b := q.numberOf(of.Args[0].Value), q.numberOf(of.Args[1].Value)
	if !a.isPlain() || !b.isPlain() {
		return "an operand is not dequantised by one constant scale, from 8 bits"
	}
	name, scale := "qlinear_add", b.scale
	switch of.Op.Name {
	case "mul":
		name = "qlinear_mul"
		if ratio := a.scales[0] * b.scales[0] / y.scales[0]; !(ratio > 1e-30 && ratio < mostRatio) {
			return "its scales are too far apart"
		}
	default:
		if !(a.scales[0]/y.scales[0] < mostRatio && b.scales[0]/y.scales[0] < mostRatio) {
			return "its scales are too far apart"
		}
		if of.Op.Name == "sub" {
			data := binary.LittleEndian.AppendUint32(nil, math.Float32bits(-b.scales[0]))
			scale = q.constant(b.scale.Name, op.Type{DType: b.scale.Type.DType, Shape: b.scale.Type.Shape}, data)
		}
	}
	q.become(c, name, nil, a.q, a.scale, q.zeroOf(a), b.q, scale, q.zeroOf(b), y.scale, q.zeroOf(y))
	c.Node = of.Node
	return ""
}
