package opcases

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(normalizationCases)

func normalizationCases() map[string][]optest.Case {
	out := map[string][]optest.Case{}
	for _, dt := range []dtype.DType{f32, f64, f16} {
		rows := 3
		if dt == f32 {
			rows = 90 // enough for several tiles
		}
		for name, cases := range map[string][]optest.Case{
			"softmax":                {{Args: args{num(dt, 3, 5)}}, {Args: args{num(dt, 3, 5, 2)}, Attrs: attr("axis", 1)}, {Args: args{num(dt, rows, 801)}}, {Args: args{num(dt, rows, 801)}, Attrs: attr("axis", 0)}},
			"log_softmax":            {{Args: args{num(dt, 3, 5)}}, {Args: args{num(dt, 3, 5, 2)}, Attrs: attr("axis", 0)}, {Args: args{num(dt, rows, 801)}}},
			"layer_normalization":    {{Args: args{num(dt, 3, 4, 5), num(dt, 5), num(dt, 5)}}, {Args: args{num(dt, 3, 4, 5), num(dt, 4, 5)}, Attrs: attr("axis", 1), Results: 3}, {Args: args{num(dt, rows, 801), num(dt, 801), num(dt, 1)}}},
			"batch_normalization":    {{Args: args{num(dt, 2, 3, 4, 5), num(dt, 3), num(dt, 3), num(dt, 3), positive(dt, 3)}}, {Args: args{num(dt, 2, 3, 120, 121), num(dt, 3), num(dt, 3), num(dt, 3), positive(dt, 3)}}},
			"instance_normalization": {{Args: args{num(dt, 2, 3, 4, 5), num(dt, 3), num(dt, 3)}}, {Args: args{num(dt, 1, 3, 160, 161), num(dt, 3), num(dt, 3)}}},
			"group_normalization":    {{Args: args{num(dt, 2, 6, 5), num(dt, 6), num(dt, 6)}, Attrs: attr("num_groups", 3)}},
			"lrn":                    {{Args: args{num(dt, 2, 5, 3)}, Attrs: attr("size", 4, "beta", 0.5)}, {Args: args{num(dt, 1, 30, 13, 21)}, Attrs: attr("size", 5)}, {Args: args{num(dt, 1, 3, 7)}, Attrs: attr("size", 9, "alpha", 0.5, "bias", 2.0)}},
		} {
			out[name] = append(out[name], cases...)
		}
	}
	return out
}

// positive has no number below zero.
func positive(dt dtype.DType, sizes ...int) optest.Operand {
	o := num(dt, sizes...)
	for i := dt.Size() - 1; i < len(o.Data); i += dt.Size() {
		o.Data[i] &= 0x7f // the sign is the highest bit of the last byte
	}
	return o
}
