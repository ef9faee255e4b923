package serve

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/serve/internal/grpc"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// plainRequest reads a message as a whole and returns the rows of a request
// that nothing is wrong with, and that has its tensor behind the rest.
func plainRequest(data []byte) (rows [][]byte) {
	_ = protobuf.Fields(data, func(number int, v protobuf.Value) error {
		if number == 7 {
			rows = append(rows, v.Data)
		} else if rows != nil {
			rows = append(rows, nil, nil) // it is wrong
		}
		return nil
	})
	m, err := methodOf(inference + "ModelInfer")
	if err != nil {
		panic(err)
	}
	v, err := m.Input.Decode(data)
	if err != nil || len(rows) != 1 || v["model_name"] != "double" || v["model_version"] != nil || v["parameters"] != nil || v["outputs"] != nil {
		return nil
	}
	inputs, _ := v["inputs"].([]any)
	if len(inputs) != 1 {
		return nil
	}
	in := inputs[0].(map[string]any)
	if in["name"] != "x" || in["datatype"] != "FP32" || in["parameters"] != nil || in["contents"] != nil || fmt.Sprint(in["shape"]) != fmt.Sprintf("[%d 4]", len(rows[0])/16) || len(rows[0])%16 != 0 {
		return nil
	}
	return rows
}

// FuzzWireMessage sends messages that are no requests, and wants what is wrong
// with them to be the client's fault, nothing to be kept, and those that are
// requests to be answered.
func FuzzWireMessage(f *testing.F) {
	s, err := New(f.Context(), Config{Paths: []string{write(f, map[string][]byte{"double.onnx": doubling(), "text.onnx": identity(onnxtest.String)})}, Memory: 64 << 20, MaxBody: 1 << 16})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Add(rawRow(f, "double", 1, 2))
	f.Add(rawRow(f, "double", 1, 300))
	f.Add(protobuf.AppendBytes(encode(f, inference+"ModelInfer", `{"model_name":"text","inputs":[{"name":"x","datatype":"BYTES","shape":[1]}]}`), 7, []byte{1, 0, 0, 0, 'a'}))
	f.Add(encode(f, inference+"ModelInfer", `{"model_name":"double","id":"1","parameters":{"priority":{"uint64_param":1},"timeout":{"int64_param":60000000}},"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"contents":{"fp32_contents":[1,2,3,4]}}],"outputs":[{"name":"y","parameters":{"classification":{"int64_param":2}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, path := range []string{inference + "ModelInfer", inference + "ModelStreamInfer"} {
			w := &nowhere{header: http.Header{}, code: 200}
			s.ServeHTTP(w, asCall(t, path, frame(data)))
			got := w.header.Get(http.TrailerPrefix + "Grpc-Status")
			if got == fmt.Sprint(int(grpc.Internal)) || got == "" {
				t.Fatalf("%s: got the status %q and %q", path, got, w.header.Get(http.TrailerPrefix+"Grpc-Message"))
			}
			if plainRequest(data) != nil && len(data) < 1<<16 && (got != "0" || w.n < 40) {
				t.Fatalf("%s: got the status %s, %q and %d bytes for a request that is right", path, got, w.header.Get(http.TrailerPrefix+"Grpc-Message"), w.n)
			}
		}
		if used := s.ingress.figures().used; used != 0 {
			t.Fatalf("got %d bytes that are kept", used)
		}
	})
}
