package opcases

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(elementwiseCases)

func elementwiseCases() map[string][]optest.Case {
	out := map[string][]optest.Case{
		"pow":   {{Args: args{num(f32, 3, 4), optest.Of([]float32{2}, 1)}}, {Args: args{num(f32, 3, 4), num(i32, 3, 4)}}, {Args: args{num(f32, 2, 1), num(f32, 3)}}},
		"mod":   {{Args: args{num(i32, 7), optest.Of([]int32{3}, 1)}}, {Attrs: attr("fmod", 1), Args: args{num(f32, 5), num(f32, 5)}}, {Args: args{num(f64, 5), num(f64, 5)}}},
		"where": {{Args: args{num(boo, 3, 4), num(f32, 3, 4), num(f32, 3, 4)}}, {Args: args{num(boo, 3, 1), num(i64, 4), num(i64, 3, 4)}}, {Args: args{num(boo, large), num(f16, large), num(f16, large)}}},
		"cast": {
			{Attrs: attr("to", i32), Args: args{num(f32, 3, 5)}}, {Attrs: attr("to", f32), Args: args{num(i32, 3, 5)}},
			{Attrs: attr("to", f16), Args: args{num(bf16, large)}}, {Attrs: attr("to", f64), Args: args{num(f32, large)}},
			{Attrs: attr("to", boo), Args: args{num(i8, 9)}}, {Attrs: attr("to", f32), Args: args{num(f32, 9)}}, {Attrs: attr("to", u8), Args: args{num(boo, 9)}},
		},
		"clip": {{Args: args{num(f32, 3, 4), optest.Of([]float32{-1}), optest.Of([]float32{2})}}, {Args: args{num(i8, 9), absent, optest.Of([]int8{1})}}, {Args: args{num(f32, large)}}},
		"not":  {{Args: args{num(boo, 3, 5)}}},
		"mean": {{Args: args{num(f32, 5)}}},
	}
	for _, narrow := range [][2]dtype.DType{{f32, f16}, {f32, bf16}, {f64, f32}, {f64, f16}, {f32, i8}, {f32, boo}, {i64, i32}, {i32, u8}, {f32, dtype.F8E4M3FN}, {f16, u8}} {
		out["cast"] = append(out["cast"], optest.Case{Attrs: attr("to", narrow[1]), Args: args{num(narrow[0], large)}})
	}
	for _, name := range []string{"add", "sub", "mul", "div", "greater", "less", "greater_or_equal", "less_or_equal", "equal"} {
		out[name] = append(out[name], binaryCases(f32, f64, f16, i8, i32, i64, u8)...)
	}
	for _, f := range elementwise.Binaries() {
		if f.ONNX == "" || f.Formula == nil {
			continue
		}
		types := []dtype.DType{f32, f64, f16}
		if f.Types&elementwise.Ints != 0 {
			types = append(types, i8, i32, i64)
		}
		if f.Types&elementwise.Uints != 0 {
			types = append(types, u8)
		}
		out[f.Name] = append(out[f.Name], binaryCases(types...)...)
	}
	for _, name := range []string{"and", "or", "xor", "equal"} {
		out[name] = append(out[name], binaryCases(boo)...)
	}
	for _, name := range []string{"max", "min", "sum", "mean"} {
		for _, dt := range floats {
			out[name] = append(out[name], optest.Case{Args: args{num(dt, 3, 4), num(dt, 3, 4), num(dt, 3, 4)}}, optest.Case{Args: args{num(dt, 4), num(dt, 3, 1), num(dt, 3, 4), num(dt)}})
		}
		out[name] = append(out[name], optest.Case{Args: args{num(f32, large), num(f32, large), num(f32, large)}})
	}
	names := []string{"softmax", "log_softmax"} // which are computed in place, too
	for _, f := range elementwise.Functions() {
		if op.Builtin().Lookup(f.Name) != nil && f.Name != "identity" && out[f.Name] == nil { // identity is a view
			names = append(names, f.Name)
		}
	}
	for _, name := range names {
		for _, dt := range floats {
			out[name] = append(out[name], optest.Case{Args: args{num(dt, 2, 3, 5)}})
		}
		out[name] = append(out[name], optest.Case{Args: args{num(f32, large)}}, optest.Case{Args: args{num(f32, 0, 3)}})
	}
	for _, name := range []string{"abs", "neg", "sign", "relu"} {
		out[name] = append(out[name], optest.Case{Args: args{num(i32, 33)}}, optest.Case{Args: args{num(i8, 33)}})
	}
	out["gelu"] = append(out["gelu"], optest.Case{Attrs: attr("approximate", "tanh"), Args: args{num(f32, 33)}})
	return out
}

func binaryCases(types ...dtype.DType) []optest.Case {
	var out []optest.Case
	for _, dt := range types {
		positive := num(dt, 3, 4) // a divisor without zeros
		for i := range positive.Data {
			if dt.IsInt() && i%dt.Size() == 0 {
				positive.Data[i] |= 1
			}
		}
		out = append(out,
			optest.Case{Args: args{num(dt, 3, 4), positive}},
			optest.Case{Args: args{num(dt, 5, 3, 4), positive}},
			optest.Case{Args: args{num(dt, 3, 1), positive}},
			optest.Case{Args: args{num(dt), positive}},
		)
	}
	return append(out, optest.Case{Args: args{num(types[0], large), num(types[0], large)}}, optest.Case{Args: args{num(types[0], 0, 4), num(types[0], 4)}})
}
