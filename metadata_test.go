package tenure_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// A server describes the inputs of a model: names, types, and sizes or the
// symbols in their place.
func ExampleModel_Inputs() {
	m := must(tenure.Load("examples/decode/decode.onnx"))
	defer m.Close()
	for _, in := range m.Inputs() {
		fmt.Print(in.Name, " ", in.DType, ":")
		for _, d := range in.Shape.Dims() {
			if size, ok := d.Size(); ok {
				fmt.Print(" ", size)
			} else if symbol, ok := d.Symbol(); ok {
				fmt.Print(" ", symbol)
			}
		}
		fmt.Println()
	}
	fmt.Println(m.Outputs()[0])
	// Output:
	// token i64: 1
	// position i64: 1
	// keys f32: 1 4 capacity 16
	// values f32: 1 4 capacity 16
	// logits: f32[1,32]
}

// The file's statements about the model as a whole.
func ExampleModel_Metadata() {
	m := must(tenure.Load("examples/decode/decode.onnx"))
	defer m.Close()
	about := m.Metadata()
	fmt.Println(about.Producer, about.Opsets[""], about.Properties["vocabulary"])
	fmt.Println(about.Doc)
	// Output:
	// examples/decode 24 32
	// One step of a decoder: a token and a cache in, what follows and the cache out.
}

func TestMetadata(t *testing.T) {
	memorytest.Check(t)
	data, err := os.ReadFile("testdata/state.onnx")
	if err != nil {
		t.Fatal(err)
	}
	// Fields behind the others, as any writer may put them: their numbers and
	// kinds are those of onnx.proto.
	data = append(data, "\x12\x05maker\x1a\x031.2\x22\x0bcom.example\x28\x07\x32\x04text\x72\x0b\x0a\x03key\x12\x04some"...)
	m, err := tenure.LoadBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got := m.Metadata()
	if got.Producer != "maker" || got.ProducerVersion != "1.2" || got.Domain != "com.example" || got.Version != 7 || got.Doc != "text" {
		t.Errorf("got %+v, want what the file says", got)
	}
	if got.Graph != "state" || got.IRVersion != 8 || got.Opsets[""] != 18 || len(got.Opsets) != 1 || got.Properties["key"] != "some" {
		t.Errorf("got %+v, want the graph, the versions and the property of the file", got)
	}
	got.Opsets[""], got.Properties["key"] = 1, "another"
	if again := m.Metadata(); again.Opsets[""] != 18 || again.Properties["key"] != "some" {
		t.Error("the maps are the model's own")
	}
}
