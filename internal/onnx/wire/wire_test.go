package wire_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/tensor"
)

func TestWireFaults(t *testing.T) {
	graph := func(body ...byte) []byte {
		var w wiretest.Writer
		w.Bytes(7, body)
		return w
	}
	deep := func() []byte {
		var g wiretest.Writer
		for range 200 {
			var attr, node wiretest.Writer
			attr.Text(1, "body")
			attr.Bytes(6, g)
			node.Text(4, "If")
			node.Bytes(5, attr)
			g = nil
			g.Bytes(1, node)
		}
		return graph(g...)
	}
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"length beyond the end", graph(0x0a, 0x05, 'x'), "graph.node[0]: length 5 at offset 3 exceeds the 1 bytes left"},
		{"nested index", graph(0x0a, 0x03, 0x22, 0x01, 'X', 0x0a, 0x02, 0x22, 0x05), "graph.node[1].op_type: length 5 at offset 10 exceeds the 0 bytes left"},
		{"tag cut", graph(0x8a), "graph: number at offset 2 exceeds the 1 bytes left"},
		{"varint cut", []byte{0x08, 0x80}, "no ONNX model, or a damaged one: ir_version: number at offset 1 exceeds the 1 bytes left"},
		{"varint too long", append([]byte{0x08}, strings.Repeat("\xff", 11)...), "no ONNX model, or a damaged one: ir_version: number at offset 1 has more than 64 bits"},
		{"field zero", []byte{0x00, 0x00}, "no ONNX model, or a damaged one: got field number 0, want 1 to 536870911"},
		{"group", []byte{0x0b}, "no ONNX model, or a damaged one: ir_version: got wire type 3 at offset 1, want 0, 1, 2 or 5"},
		{"wrong wire type", []byte{0x38, 0x01}, "graph: got wire type 0 at offset 1, want 2"},
		{"number as bytes", []byte{0x0a, 0x01, 0x01}, "no ONNX model, or a damaged one: ir_version: got wire type 2 at offset 2, want 0"},
		{"fixed cut", []byte{0xa5, 0x06, 0x01}, "no ONNX model, or a damaged one: 4 bytes at offset 2 exceed the 1 bytes left"},
		{"fixed64 cut", []byte{0xa1, 0x06, 0x01}, "no ONNX model, or a damaged one: 8 bytes at offset 2 exceed the 1 bytes left"},
		{"not UTF-8", []byte{0x12, 0x01, 0xff}, "no ONNX model, or a damaged one: producer_name: text at offset 2 is not UTF-8"},
		{"second graph", append(graph(), graph()...), "graph: got a second graph at offset 4"},
		{"node without operator", graph(0x0a, 0x00), "graph.node[0]: op_type is missing at offset 4"},
		{"packed floats cut", graph(0x0a, 0x08, 0x22, 0x01, 'X', 0x2a, 0x03, 0x3a, 0x01, 0x00), "graph.node[0].attribute[0].floats[0]: got 1 bytes of packed numbers at offset 11, want a multiple of 4"},
		{"packed varint cut", graph(0x2a, 0x03, 0x0a, 0x01, 0x80), "graph.initializer[0].dims[0]: number at offset 6 exceeds the 1 bytes left"},
		{"attribute without a name", graph(0x0a, 0x05, 0x22, 0x01, 'X', 0x2a, 0x00), "graph.node[0].attribute[0]: name is missing at offset 9"},
		{"deep", deep(), "nest deeper than 100"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := wire.DecodeModel(tc.data)
			if err == nil {
				t.Fatalf("decodeModel accepted the file, want %q", tc.want)
			}
			if tc.name == "deep" {
				if !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 10_000 {
					t.Fatalf("got %v, want %q in it", err, tc.want)
				}
			} else if err.Error() != tc.want {
				t.Fatalf("got  %v\nwant %s", err, tc.want)
			}
			if !errors.Is(err, tensor.ErrCorrupt) {
				t.Errorf("%v is not the kind ErrCorrupt", err)
			}
		})
	}
}

func TestWireSkipsUnknownFields(t *testing.T) {
	var w wiretest.Writer
	w.Varint(99, 5)
	w.Bytes(98, []byte("later"))
	w.Float(97, 1)
	w.Tag(96, wire.TypeFixed8)
	w = append(w, 1, 2, 3, 4, 5, 6, 7, 8)
	w.Varint(1, 8)
	m, err := wire.DecodeModel(w)
	if err != nil {
		t.Fatal(err)
	}
	if m.IRVersion != 8 {
		t.Errorf("ir_version behind unknown fields: got %d, want 8", m.IRVersion)
	}
}

// Packed and unpacked lists are the same list, also when mixed.
func TestWireLists(t *testing.T) {
	var attr, node, graph, w wiretest.Writer
	attr.Text(1, "axes")
	attr.Varint(8, -1)
	attr.Bytes(8, []byte{0x05, 0x80, 0x01})
	attr.Varint(8, 7)
	attr.Varint(20, wire.AttrInts)
	node.Text(4, "X")
	node.Bytes(5, attr)
	graph.Bytes(1, node)
	w.Bytes(7, graph)
	m, err := wire.DecodeModel(w)
	if err != nil {
		t.Fatal(err)
	}
	got := m.Graph.Nodes[0].Attrs[0].Value.([]int64)
	if want := []int64{-1, 5, 128, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecodeRoundTrip(t *testing.T) {
	want := &wire.Model{
		IRVersion: 8, Producer: "p", ProducerVersion: "1", Domain: "d", Version: 3, Doc: "what it is",
		Opsets:   []wire.Opset{{"", 16}, {"acme", 2}},
		Metadata: []wire.Entry{{"k", "v"}},
		Graph: &wire.Graph{
			Name: "g", Doc: "what it computes",
			Nodes: []wire.Node{{
				Name: "n", OpType: "Op", Domain: "acme", Overload: "o", Inputs: []string{"a", "", "b"}, Outputs: []string{"c"},
				Attrs: []wire.Attribute{
					{Name: "f", Value: float32(1.5)}, {Name: "i", Value: int64(-3)}, {Name: "s", Value: "\xff"},
					{Name: "fs", Value: []float32{1, 2}}, {Name: "is", Value: []int64{}}, {Name: "ss", Value: []string{"x", ""}},
					{Name: "r", Ref: "outer"}, {Name: "g", Value: &wire.Graph{Name: "inner"}}, {Name: "tp", Value: wire.OtherKind("tp")},
				},
			}},
			Inputs: []wire.Value{
				{"a", wire.Type{Kind: "tensor", ElemType: 1, HasShape: true, Dims: []wire.Dim{{Size: 0, Sized: true}, {Symbol: "n"}, {}}}},
				{"s", wire.Type{Kind: "sequence"}}, {"u", wire.Type{}},
			},
			Outputs: []wire.Value{{"c", wire.Type{Kind: "tensor", ElemType: 7}}},
		},
		Functions: []wire.Function{{Name: "F", Domain: "acme", Overload: "o", Inputs: []string{"x"}, Outputs: []string{"y"},
			Attrs: []string{"a"}, Defaults: []wire.Attribute{{Name: "b", Value: int64(1)}}, Nodes: []wire.Node{{OpType: "Relu"}},
			Opsets: []wire.Opset{{"", 17}}}},
	}
	data := wiretest.EncodeModel(want)
	got, err := wire.DecodeModel(data)
	if err != nil {
		t.Fatal(err)
	}
	// Encoding the decoded file again yields the same bytes.
	if again := wiretest.EncodeModel(got); string(again) != string(data) {
		t.Errorf("encoded again: got\n%x\nwant\n%x", again, data)
	}
}

func TestWholeFileIsNotCutOff(t *testing.T) {
	whole := wiretest.ModelText(t, "opset 13\ninput x f32[4]\ny = Relu(x)\noutput y f32[4]")
	if _, _, short := wire.CutOff(whole); short {
		t.Error("a whole model is said to be cut off")
	}
}
