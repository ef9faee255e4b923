package wire

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// The messages of an ONNX file, as plain structs with the fields that the
// importer needs. Strings are copies, because names outlive the file; the
// bytes of tensors stay where they are.

// Model is a ModelProto.
type Model struct {
	IRVersion       int64
	Producer        string
	ProducerVersion string
	Domain          string
	Version         int64
	Doc             string
	Opsets          []Opset
	Graph           *Graph
	Functions       []Function
	Metadata        []Entry
}

// Opset is one imported version of the operators of a domain.
type Opset struct {
	Domain  string
	Version int64
}

// Entry is a key with its value: of the metadata, or of external data.
type Entry struct{ Key, Value string }

// Graph is a GraphProto: that of the model, or one in an attribute.
type Graph struct {
	Name         string
	Doc          string
	Nodes        []Node
	Initializers []Tensor
	Sparse       []Sparse
	Inputs       []Value
	Outputs      []Value
	Values       []Value // declared types of others
}

// Node is a NodeProto.
type Node struct {
	Name, OpType, Domain, Overload string

	Inputs, Outputs []string
	Attrs           []Attribute
}

// Attribute is an AttributeProto. Value is an int64, float32, string, []int64,
// []float32, []string, *Tensor, *Sparse, *Graph or *Type, nil for a reference,
// and OtherKind for a kind that no supported operator has.
type Attribute struct {
	Name  string
	Ref   string // the attribute of the enclosing function to take the value from
	Value any
}

// OtherKind is the value of an attribute of a kind that no supported operator
// has, such as a list of graphs.
type OtherKind string

// Tensor is a TensorProto as encoded. It keeps the message instead of lists of
// numbers: they are decoded once, into their final place.
type Tensor struct {
	Name     string
	Dims     []int64
	DataType int32
	at       int     // offset in the file
	Body     []byte  // the whole message, a part of the file
	Raw      []byte  // raw_data, a part of the file
	rawAt    int     // offset of raw_data in the file
	External []Entry // where the data are outside the file; nil otherwise
}

// Value is a ValueInfoProto: a name with its declared type.
type Value struct {
	Name string
	Type Type
}

// Type is the declared type of a value. Kind is "tensor", "sequence",
// "optional" or "map", another kind that is not supported, or "" when the file
// does not say.
type Type struct {
	Kind     string
	ElemType int32
	HasShape bool
	Dims     []Dim
	Elem     *Type // of a sequence or an optional, or of the values of a map; nil when the file does not say
	Key      int32 // the element type of the keys of a map
}

// String returns the kind of a declared type in words.
func (t *Type) String() string {
	switch {
	case t.Kind == "tensor":
	case t.Kind == "map" && t.Elem != nil:
		key := Type{Kind: "tensor", ElemType: t.Key}
		return "type map of " + key.String() + " to " + strings.TrimPrefix(t.Elem.String(), "type ")
	case t.Elem != nil:
		return "type " + t.Kind + " of " + strings.TrimPrefix(t.Elem.String(), "type ")
	default:
		return "type " + t.Kind
	}
	if dt, err := dtype.FromONNX(t.ElemType); err == nil {
		return "element type " + dt.String()
	}
	return fmt.Sprintf("element type %d", t.ElemType)
}

// Dim is a declared dimension: a size, a name, or neither.
type Dim struct {
	Size   int64
	Sized  bool
	Symbol string
}

// Function is a FunctionProto.
type Function struct {
	Name, Domain, Overload string

	Inputs, Outputs []string
	Attrs           []string    // attributes without a default
	Defaults        []Attribute // attributes with one
	Nodes           []Node
	Opsets          []Opset
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
	elemTypeFields = schema{ // of a sequence or an optional
		1: {"elem_type", kindMessage, false},
	}
	mapTypeFields = schema{
		1: {"key_type", kindVarint, false},
		2: {"value_type", kindMessage, false},
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
