package onnx

// The messages of an ONNX file, as plain structs with what the importer needs.
// Strings are copies, because names outlive the file; the bytes of tensors
// stay where they are.

type modelProto struct {
	irVersion       int64
	producer        string
	producerVersion string
	domain          string
	version         int64
	doc             string
	opsets          []opsetProto
	graph           *graphProto
	functions       []functionProto
	metadata        []entryProto
}

type opsetProto struct {
	domain  string
	version int64
}

type entryProto struct{ key, value string }

type graphProto struct {
	name         string
	doc          string
	nodes        []nodeProto
	initializers []tensorProto
	sparse       []string // names of sparse initializers
	inputs       []valueProto
	outputs      []valueProto
	values       []valueProto
}

type nodeProto struct {
	name, opType, domain, overload string

	inputs, outputs []string
	attrs           []attrProto
}

// attrProto is one attribute. value is an int64, float32, string, []int64,
// []float32, []string, *tensorProto or *graphProto, nil for a reference, and
// otherKind for a kind that no supported operator has.
type attrProto struct {
	name  string
	ref   string // the attribute of the enclosing function to take the value from
	value any
}

// otherKind is the value of an attribute of a kind that no supported operator
// has, such as a sparse tensor or a list of graphs.
type otherKind string

// tensorProto is a tensor as encoded. It keeps the message instead of lists
// of numbers: they are decoded once, into their final place.
type tensorProto struct {
	name     string
	dims     []int64
	dataType int32
	at       int          // offset in the file
	body     []byte       // the whole message
	raw      []byte       // raw_data, a part of the file
	rawAt    int          // offset of raw_data in the file
	external []entryProto // where the data are outside the file; nil otherwise
}

type valueProto struct {
	name string
	typ  typeProto
}

// typeProto is the declared type of a value. kind is "tensor", another kind
// that is not supported, or "" when the file does not say.
type typeProto struct {
	kind     string
	elemType int32
	hasShape bool
	dims     []dimProto
}

// dimProto is a declared dimension: a size, a name, or neither.
type dimProto struct {
	size   int64
	sized  bool
	symbol string
}

type functionProto struct {
	name, domain, overload string

	inputs, outputs []string
	attrs           []string    // attributes without a default
	defaults        []attrProto // attributes with one
	nodes           []nodeProto
	opsets          []opsetProto
}

// Field numbers and names are those of onnx.proto.
var (
	modelFields = schema{
		1:  {"ir_version", kindVarint, false},
		2:  {"producer_name", kindString, false},
		3:  {"producer_version", kindString, false},
		4:  {"domain", kindString, false},
		5:  {"model_version", kindVarint, false},
		6:  {"doc_string", kindBytes, false}, // of any length
		7:  {"graph", kindMessage, false},
		8:  {"opset_import", kindMessage, true},
		14: {"metadata_props", kindMessage, true},
		25: {"functions", kindMessage, true},
	}
	opsetFields = schema{
		1: {"domain", kindString, false},
		2: {"version", kindVarint, false},
	}
	entryFields = schema{
		1: {"key", kindString, false},
		2: {"value", kindBytes, false}, // of any length
	}
	graphFields = schema{
		1:  {"node", kindMessage, true},
		2:  {"name", kindString, false},
		5:  {"initializer", kindMessage, true},
		10: {"doc_string", kindBytes, false},
		11: {"input", kindMessage, true},
		12: {"output", kindMessage, true},
		13: {"value_info", kindMessage, true},
		15: {"sparse_initializer", kindMessage, true},
	}
	sparseFields = schema{
		1: {"values", kindMessage, false}, // whose name is that of the whole
		2: {"indices", kindMessage, false},
		3: {"dims", kindVarint, true},
	}
	nodeFields = schema{
		1: {"input", kindString, true},
		2: {"output", kindString, true},
		3: {"name", kindString, false},
		4: {"op_type", kindString, false},
		5: {"attribute", kindMessage, true},
		7: {"domain", kindString, false},
		8: {"overload", kindString, false},
	}
	attrFields = schema{
		1:  {"name", kindString, false},
		2:  {"f", kindFloat, false},
		3:  {"i", kindVarint, false},
		4:  {"s", kindBytes, false},
		5:  {"t", kindMessage, false},
		6:  {"g", kindMessage, false},
		7:  {"floats", kindFloat, true},
		8:  {"ints", kindVarint, true},
		9:  {"strings", kindBytes, true},
		10: {"tensors", kindMessage, true},
		11: {"graphs", kindMessage, true},
		14: {"tp", kindMessage, false},
		15: {"type_protos", kindMessage, true},
		20: {"type", kindVarint, false},
		21: {"ref_attr_name", kindString, false},
		22: {"sparse_tensor", kindMessage, false},
		23: {"sparse_tensors", kindMessage, true},
	}
	tensorFields = schema{
		1:  {"dims", kindVarint, true},
		2:  {"data_type", kindVarint, false},
		3:  {"segment", kindMessage, false},
		4:  {"float_data", kindFloat, true},
		5:  {"int32_data", kindVarint, true},
		6:  {"string_data", kindBytes, true},
		7:  {"int64_data", kindVarint, true},
		8:  {"name", kindString, false},
		9:  {"raw_data", kindBytes, false},
		10: {"double_data", kindDouble, true},
		11: {"uint64_data", kindVarint, true},
		13: {"external_data", kindMessage, true},
		14: {"data_location", kindVarint, false},
	}
	valueFields = schema{
		1: {"name", kindString, false},
		2: {"type", kindMessage, false},
	}
	typeFields = schema{
		1: {"tensor_type", kindMessage, false},
		4: {"sequence_type", kindMessage, false},
		5: {"map_type", kindMessage, false},
		7: {"opaque_type", kindMessage, false},
		8: {"sparse_tensor_type", kindMessage, false},
		9: {"optional_type", kindMessage, false},
	}
	tensorTypeFields = schema{
		1: {"elem_type", kindVarint, false},
		2: {"shape", kindMessage, false},
	}
	shapeFields = schema{
		1: {"dim", kindMessage, true},
	}
	dimFields = schema{
		1: {"dim_value", kindVarint, false},
		2: {"dim_param", kindString, false},
	}
	functionFields = schema{
		1:  {"name", kindString, false},
		4:  {"input", kindString, true},
		5:  {"output", kindString, true},
		6:  {"attribute", kindString, true},
		7:  {"node", kindMessage, true},
		9:  {"opset_import", kindMessage, true},
		10: {"domain", kindString, false},
		11: {"attribute_proto", kindMessage, true},
		13: {"overload", kindString, false},
	}
)
