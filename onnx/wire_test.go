package onnx

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/tensor"
)

func TestWireFaults(t *testing.T) {
	graph := func(body ...byte) []byte {
		var w wireWriter
		w.bytes(7, body)
		return w
	}
	deep := func() []byte {
		var g wireWriter
		for range 200 {
			var attr, node wireWriter
			attr.text(1, "body")
			attr.bytes(6, g)
			node.text(4, "If")
			node.bytes(5, attr)
			g = nil
			g.bytes(1, node)
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
			_, err := decodeModel(tc.data)
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
	var w wireWriter
	w.varint(99, 5)
	w.bytes(98, []byte("later"))
	w.float(97, 1)
	w.tag(96, wireFixed8)
	w = append(w, 1, 2, 3, 4, 5, 6, 7, 8)
	w.varint(1, 8)
	m, err := decodeModel(w)
	if err != nil {
		t.Fatal(err)
	}
	if m.irVersion != 8 {
		t.Errorf("ir_version behind unknown fields: got %d, want 8", m.irVersion)
	}
}

// Packed and unpacked lists are the same list, also when mixed.
func TestWireLists(t *testing.T) {
	var attr, node, graph, w wireWriter
	attr.text(1, "axes")
	attr.varint(8, -1)
	attr.bytes(8, []byte{0x05, 0x80, 0x01})
	attr.varint(8, 7)
	attr.varint(20, attrInts)
	node.text(4, "X")
	node.bytes(5, attr)
	graph.bytes(1, node)
	w.bytes(7, graph)
	m, err := decodeModel(w)
	if err != nil {
		t.Fatal(err)
	}
	got := m.graph.nodes[0].attrs[0].value.([]int64)
	if want := []int64{-1, 5, 128, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecodeRoundTrip(t *testing.T) {
	want := &modelProto{
		irVersion: 8, producer: "p", producerVersion: "1", domain: "d", version: 3, doc: "what it is",
		opsets:   []opsetProto{{"", 16}, {"acme", 2}},
		metadata: []entryProto{{"k", "v"}},
		graph: &graphProto{
			name: "g", doc: "what it computes",
			nodes: []nodeProto{{
				name: "n", opType: "Op", domain: "acme", overload: "o", inputs: []string{"a", "", "b"}, outputs: []string{"c"},
				attrs: []attrProto{
					{name: "f", value: float32(1.5)}, {name: "i", value: int64(-3)}, {name: "s", value: "\xff"},
					{name: "fs", value: []float32{1, 2}}, {name: "is", value: []int64{}}, {name: "ss", value: []string{"x", ""}},
					{name: "r", ref: "outer"}, {name: "g", value: &graphProto{name: "inner"}}, {name: "tp", value: otherKind("tp")},
				},
			}},
			inputs: []valueProto{
				{"a", typeProto{kind: "tensor", elemType: 1, hasShape: true, dims: []dimProto{{size: 0, sized: true}, {symbol: "n"}, {}}}},
				{"s", typeProto{kind: "sequence"}}, {"u", typeProto{}},
			},
			outputs: []valueProto{{"c", typeProto{kind: "tensor", elemType: 7}}},
		},
		functions: []functionProto{{name: "F", domain: "acme", overload: "o", inputs: []string{"x"}, outputs: []string{"y"},
			attrs: []string{"a"}, defaults: []attrProto{{name: "b", value: int64(1)}}, nodes: []nodeProto{{opType: "Relu"}},
			opsets: []opsetProto{{"", 17}}}},
	}
	data := encodeModel(want)
	got, err := decodeModel(data)
	if err != nil {
		t.Fatal(err)
	}
	// What was decoded, encoded again, is the same file.
	if again := encodeModel(got); string(again) != string(data) {
		t.Errorf("encoded again: got\n%x\nwant\n%x", again, data)
	}
}
