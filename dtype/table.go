package dtype

import "fmt"

type class uint8

const (
	classNone class = iota
	classFloat
	classInt
	classUint
	classComplex
)

// info describes one type. dlpack is -1 where DLPack has no code, onnx is 0
// where ONNX has none.
type info struct {
	name   string
	bits   uint8
	class  class
	onnx   int8
	dlpack int8
}

// table is the one place where types are described. Codes are those of
// TensorProto.DataType and of DLDataTypeCode.
var table = [count]info{
	Invalid:       {"invalid", 0, classNone, 0, -1},
	F32:           {"f32", 32, classFloat, 1, 2},
	F64:           {"f64", 64, classFloat, 11, 2},
	F16:           {"f16", 16, classFloat, 10, 2},
	BF16:          {"bf16", 16, classFloat, 16, 4},
	I8:            {"i8", 8, classInt, 3, 0},
	I16:           {"i16", 16, classInt, 5, 0},
	I32:           {"i32", 32, classInt, 6, 0},
	I64:           {"i64", 64, classInt, 7, 0},
	U8:            {"u8", 8, classUint, 2, 1},
	U16:           {"u16", 16, classUint, 4, 1},
	U32:           {"u32", 32, classUint, 12, 1},
	U64:           {"u64", 64, classUint, 13, 1},
	Bool:          {"bool", 8, classNone, 9, 6},
	C64:           {"c64", 64, classComplex, 14, 5},
	C128:          {"c128", 128, classComplex, 15, 5},
	String:        {"string", 0, classNone, 8, -1},
	F8E4M3FN:      {"f8e4m3fn", 8, classFloat, 17, 10},
	F8E4M3FNUZ:    {"f8e4m3fnuz", 8, classFloat, 18, 11},
	F8E5M2:        {"f8e5m2", 8, classFloat, 19, 12},
	F8E5M2FNUZ:    {"f8e5m2fnuz", 8, classFloat, 20, 13},
	F8E8M0:        {"f8e8m0", 8, classFloat, 24, 14},
	F4E2M1:        {"f4e2m1", 4, classFloat, 23, 17},
	I4:            {"i4", 4, classInt, 22, 0},
	U4:            {"u4", 4, classUint, 21, 1},
	I2:            {"i2", 2, classInt, 26, 0},
	U2:            {"u2", 2, classUint, 25, 1},
	F6E2M3FN:      {"f6e2m3fn", 6, classFloat, 27, 15},
	F6E3M2FN:      {"f6e3m2fn", 6, classFloat, 28, 16},
	F8E3M4:        {"f8e3m4", 8, classFloat, 0, 7},
	F8E4M3:        {"f8e4m3", 8, classFloat, 0, 8},
	F8E4M3B11FNUZ: {"f8e4m3b11fnuz", 8, classFloat, 0, 9},
	C32:           {"c32", 32, classComplex, 0, 5},
	BC32:          {"bc32", 32, classComplex, 0, 18},
	Opaque:        {"opaque", 64, classNone, 0, 3},
}

// info treats a value outside the constants, which only a conversion can make,
// as Invalid.
func (d DType) info() *info {
	if d >= count {
		d = Invalid
	}
	return &table[d]
}

type dlpackKey struct{ code, bits uint8 }

var (
	byName   = map[string]DType{}
	byONNX   = map[int32]DType{}
	byDLPack = map[dlpackKey]DType{}
)

func init() {
	for d := Invalid + 1; d < count; d++ {
		in := d.info()
		byName[in.name] = d
		if in.onnx > 0 {
			byONNX[int32(in.onnx)] = d
		}
		if in.dlpack >= 0 {
			byDLPack[dlpackKey{uint8(in.dlpack), in.bits}] = d
		}
	}
}

// ONNX returns the TensorProto.DataType code, 0 (UNDEFINED) where ONNX has
// none.
func (d DType) ONNX() int32 { return int32(d.info().onnx) }

// FromONNX returns the type of a TensorProto.DataType code.
func FromONNX(code int32) (DType, error) {
	if d, ok := byONNX[code]; ok {
		return d, nil
	}
	return Invalid, fmt.Errorf("dtype.FromONNX: got data type code %d, want 1 to %d: %w", code, len(byONNX), ErrDType)
}

// DLPack returns the three fields of a DLDataType. It is not ok for Invalid and
// String, which DLPack cannot express.
func (d DType) DLPack() (code, bits uint8, lanes uint16, ok bool) {
	in := d.info()
	if in.dlpack < 0 {
		return 0, 0, 0, false
	}
	return uint8(in.dlpack), in.bits, 1, true
}

// FromDLPack returns the type of the three fields of a DLDataType. Vector types
// (more than one lane) are not element types.
func FromDLPack(code, bits uint8, lanes uint16) (DType, error) {
	if lanes != 1 {
		return Invalid, fmt.Errorf("dtype.FromDLPack: got %d lanes, want 1: %w", lanes, ErrDType)
	}
	if d, ok := byDLPack[dlpackKey{code, bits}]; ok {
		return d, nil
	}
	return Invalid, fmt.Errorf("dtype.FromDLPack: got code %d with %d bits, want a pair that is an element type: %w", code, bits, ErrDType)
}
