package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
)

// addB and castB read the weight b; whereB reads the bools b.
const (
	addB   = "opset 21\ninput x f32[1,3]\ny = Add(x, b)\noutput y f32\n"
	castB  = "opset 21\ninput x f32[1,3]\nf = Cast(b) {to = 1}\ny = Add(x, f)\noutput y f32\n"
	whereB = "opset 21\ninput x f32[1,3]\nn = Neg(x)\ny = Where(b, x, n)\noutput y f32\n"
	oneB   = "init b f32[3] 1 2 3\n"
)

// first is the first initializer of a model.
func first(m *wire.Model) *wire.Tensor { return &m.Graph.Initializers[0] }

// inList puts the data of the first initializer into a typed list, under an
// element type of ONNX.
func inList(code int32, field int, numbers ...int64) func(*wire.Model) {
	return func(m *wire.Model) {
		t := first(m)
		t.DataType, t.Raw = code, nil
		writeNumbers(t, field, numbers)
	}
}

// alsoInList adds a typed list to the first initializer.
func alsoInList(field int, numbers ...int64) func(*wire.Model) {
	return func(m *wire.Model) { writeNumbers(first(m), field, numbers) }
}

func writeNumbers(t *wire.Tensor, field int, numbers []int64) {
	w := wiretest.Writer(t.Body)
	for _, n := range numbers {
		switch field {
		case wire.FloatData:
			w.Float(field, float32(n))
		case wire.DoubleData:
			w.Tag(field, wire.TypeFixed8)
			w = append(w, encodeFloats(dtype.F64, float64(n))...)
		default:
			w.Varint(field, n)
		}
	}
	t.Body = w
}

// raw sets the raw data of the first initializer.
func raw(code int32, data ...byte) func(*wire.Model) {
	return func(m *wire.Model) { first(m).DataType, first(m).Raw = code, data }
}

// withDims sets the sizes of the first initializer.
func withDims(edit func(*wire.Model), dims ...int64) func(*wire.Model) {
	return func(m *wire.Model) {
		edit(m)
		first(m).Dims = dims
	}
}

const (
	codeF32, codeU8, codeI8, codeU16, codeI16, codeI32, codeI64 = 1, 2, 3, 4, 5, 6, 7
	codeBool, codeF16, codeU32, codeU64, codeBF16, codeI4       = 9, 10, 12, 13, 16, 22
)

// dataFiles have odd tensors.
var dataFiles = []oddFile{
	{name: "bools in raw data", text: whereB + oneB, edit: raw(codeBool, 255, 0, 2), words: "bools other than 0 and 1 are true"},
	{name: "bools in a list", text: whereB + oneB, edit: inList(codeBool, wire.Int32Data, -1, 0, 256)},
	{name: "bools that are cast", text: castB + oneB, edit: raw(codeBool, 255, 0, 2), words: "bools other than 0 and 1 are true"},
	{name: "halves in int32_data", text: castB + oneB, edit: inList(codeF16, wire.Int32Data, 0x3c00, 0x4000, 0xc200)},
	{name: "negative halves in int32_data", text: castB + oneB, edit: inList(codeF16, wire.Int32Data, 0x3c00, 0x4000, -1), outcome: refusedBoth, words: "got number -1, want one that fits f16"},
	{name: "bfloat16 in int32_data", text: castB + oneB, edit: inList(codeBF16, wire.Int32Data, 0x3f80, 0x4000, 0xc000)},
	{name: "halves in float_data", text: castB + oneB, edit: inList(codeF16, wire.FloatData, 1, 2, 3), outcome: refusedBoth, words: "got float_data, want int32_data for f16[3]"},
	{name: "i8 without a sign", text: castB + oneB, edit: inList(codeI8, wire.Int32Data, 255, 1, 128)},
	{name: "u8 with a sign", text: castB + oneB, edit: inList(codeU8, wire.Int32Data, -1, 1, -128)},
	{name: "i16 without a sign", text: castB + oneB, edit: inList(codeI16, wire.Int32Data, 65535, 1, 2)},
	{name: "u16 with a sign", text: castB + oneB, edit: inList(codeU16, wire.Int32Data, -1, 1, 2)},
	{name: "integers of 8 bits that need more", text: castB + oneB, edit: inList(codeU8, wire.Int32Data, 300, 1, 2), outcome: onlyONNXRuntime,
		words: "got number 300, want one that fits u8", why: "a number that does not fit the element type is an error; ONNX Runtime keeps its last bits"},
	{name: "i64 in int32_data", text: castB + oneB, edit: inList(codeI64, wire.Int32Data, 1, 2, 3), outcome: refusedBoth, words: "got int32_data, want int64_data for i64[3]"},
	{name: "i32 in int64_data", text: castB + oneB, edit: inList(codeI32, wire.Int64Data, 1, 2, 3), outcome: refusedBoth, words: "got int64_data, want int32_data for i32[3]"},
	{name: "u32 in uint64_data", text: castB + oneB, edit: inList(codeU32, wire.Uint64Data, 1, 2, 3)},
	{name: "u64 in uint64_data", text: castB + oneB, edit: inList(codeU64, wire.Uint64Data, 1, 2, 3)},
	{name: "i4 in int32_data", text: castB + oneB, edit: inList(codeI4, wire.Int32Data, 0x21, 0x3)},
	{name: "floats in double_data", text: addB + oneB, edit: inList(codeF32, wire.DoubleData, 1, 2, 3), outcome: refusedBoth, words: "got double_data, want float_data for f32[3]"},
	{name: "raw data and a list", text: addB + oneB, edit: alsoInList(wire.FloatData, 7, 8, 9), words: "float_data is not read: raw_data counts"},
	{name: "two lists", text: addB + oneB, edit: func(m *wire.Model) {
		inList(codeF32, wire.FloatData, 1, 2, 3)(m)
		alsoInList(wire.Int64Data, 7)(m)
	}, words: "int64_data is not read: float_data counts"},
	{name: "too few numbers", text: addB + oneB, edit: inList(codeF32, wire.FloatData, 1, 2), outcome: refusedBoth, words: "float_data: got 2 numbers, want 3 for f32[3]"},
	{name: "one number for many", text: addB + oneB, edit: inList(codeF32, wire.FloatData, 1), outcome: refusedBoth, words: "float_data: got 1 numbers, want 3"},
	{name: "a list for a scalar", text: addB + oneB, edit: withDims(inList(codeF32, wire.FloatData, 1, 2, 3)), outcome: refusedBoth, words: "float_data: got 3 numbers, want 1 for f32[]"},
	{name: "raw data too short", text: addB + oneB, edit: raw(codeF32, 0, 0, 128, 63), outcome: refusedBoth, words: "raw_data at offset 37: got 4 bytes, want 12 for f32[3]"},
	{name: "raw data too long", text: addB + oneB, edit: withDims(func(*wire.Model) {}, 2), outcome: refusedBoth, words: "got 12 bytes, want 8 for f32[2]"},
	{name: "a negative size", text: addB + oneB, edit: withDims(func(*wire.Model) {}, -3), outcome: refusedBoth, words: "dims[0]: got -3, want 0 or more"},
	{name: "no element type", text: addB + oneB, edit: func(m *wire.Model) { first(m).DataType = 0 }, outcome: refusedBoth, words: "got data type code 0, want 1 to 28"},
	{name: "tensors in segments", text: addB + oneB, edit: func(m *wire.Model) { first(m).Body = append(first(m).Body, 3<<3|2, 4, 1<<3, 0, 2<<3, 3) }, outcome: onlyONNXRuntime,
		words: "tensors in segments are not supported", why: "segments are not supported; ONNX Runtime takes the first one for all of the tensor"},
	{name: "no data of an empty tensor", text: "opset 21\ninput x f32[1,3]\ny = Concat(x, b) {axis = 0}\noutput y f32\ninit b f32[0,3]\n"},
	{name: "an initializer without a name", text: "opset 21\ninput x f32[1,3]\ny = Relu(x)\noutput y f32\ninit \"\" f32[1] 1\n", words: "1 initializers without a name"},
	{name: "two initializers of one name", text: addB + oneB + "init b f32[3] 4 5 6\n", words: `several initializers of one name, of which the last one counts: "b"`},
	{name: "two initializers of one name and other sizes", text: addB + oneB + "init b f32[1] 4\n", outcome: refusedBoth, words: `initializer "b": got f32[1] after one of f32[3] of that name, want one`},
	{name: "an initializer that a node computes", text: addB + oneB + "b = Relu(x)\n", outcome: refusedBoth, words: `output "b": got a second value of that name`},
	{name: "a constant in two forms", text: "opset 21\ninput x f32[1,3]\nc = Constant() {value = f32[1] 1, value_float = 2.0}\ny = Add(x, c)\noutput y f32\n", outcome: onlyONNXRuntime,
		words: "want one output and one value", why: "a Constant with two values is an error; ONNX Runtime takes the last one"},
	{name: "a constant without a value", text: "opset 21\ninput x f32[1,3]\nc = Constant()\ny = Add(x, c)\noutput y f32\n", outcome: refusedBoth, words: "want one output and one value"},
	{name: "strings", text: "opset 19\ninput q string[3]\ny = Equal(q, s)\noutput y bool\ninit s string[3] \"a\" \"\" \"c\"\n", inputs: []*value{texts("q", "a", "b", "c")}},
	{name: "strings with a NUL", text: "opset 19\ninput q string[3]\ny = Equal(q, s)\noutput y bool\ninit s string[3] \"a\" \"b\\x00\" \"c\"\n", inputs: []*value{texts("q", "a", "b", "c")},
		outcome: onlyONNXRuntime, words: "got a string with a NUL, which ends strings here", why: "strings end at their first NUL here, so that one with a NUL is an error"},
	{name: "too few strings", text: "opset 19\ninput q string[3]\ny = Equal(q, s)\noutput y bool\ninit s string[3] \"a\"\n", inputs: []*value{texts("q", "a", "b", "c")}, outcome: refusedBoth,
		words: "string_data: got 1 strings, want 3 for string[3]"},
}

// texts returns an input of strings.
func texts(name string, list ...string) *value {
	return &value{name: name, dt: dtype.String, dims: []int{len(list)}, data: encodeStrings(list)}
}
