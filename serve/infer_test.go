package serve

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
)

// TestEveryType sends the elements of every type as JSON and as bytes, and
// takes them back in both forms.
func TestEveryType(t *testing.T) {
	cases := []struct {
		name string
		elem int64
		json string
		data []byte
	}{
		{"BOOL", onnxtest.Bool, `[true,false]`, []byte{1, 0}},
		{"UINT8", u8, `[255,1]`, []byte{255, 1}},
		{"INT8", i8, `[-1,1]`, []byte{255, 1}},
		{"UINT16", u16, `[65535,1]`, []byte{255, 255, 1, 0}},
		{"INT16", i16, `[-2,1]`, []byte{254, 255, 1, 0}},
		{"UINT32", u32, `[4294967295,1]`, []byte{255, 255, 255, 255, 1, 0, 0, 0}},
		{"INT32", onnxtest.I32, `[-2,1]`, []byte{254, 255, 255, 255, 1, 0, 0, 0}},
		{"UINT64", u64, `[18446744073709551615,1]`, []byte{255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0}},
		{"INT64", onnxtest.I64, `[-2,1]`, []byte{254, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0}},
		{"FP16", f16, `[-1.5,Infinity]`, []byte{0, 0xbe, 0, 0x7c}},
		{"BF16", bf16, `[-1.5,1]`, []byte{0xc0, 0xbf, 0x80, 0x3f}},
		{"FP32", onnxtest.F32, `[-1.5,0.1]`, floatBytes([]float32{-1.5, 0.1})},
		{"FP64", f64, `[-1.5,1]`, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0xbf, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{"BYTES", onnxtest.String, `["","é\"x"]`, append([]byte{0, 0, 0, 0, 4, 0, 0, 0}, "é\"x"...)},
	}
	files := map[string][]byte{}
	for _, c := range cases {
		files[c.name+".onnx"] = identity(c.elem)
	}
	_, h := start(t, Config{Paths: []string{write(t, files)}})
	for _, c := range cases {
		url := h.URL + "/v2/models/" + c.name + "/infer"
		wantCode(t, get(t, h.URL+"/v2/models/"+c.name), 200, `"inputs":[{"name":"x","datatype":"`+c.name+`","shape":[-1]}]`)
		asJSON := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":%q,"shape":[2],"data":%s}]}`, c.name, c.json)
		want := fmt.Sprintf(`{"model_name":%q,"model_version":"1","outputs":[{"name":"y","datatype":%q,"shape":[2],"data":%s}]}`, c.name, c.name, c.json)
		if got := post(t, url, asJSON, nil); got.code != 200 || got.text != want {
			t.Errorf("%s as JSON: got %d and %s, want %s", c.name, got.code, got.text, want)
		}
		asBytes := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":%q,"shape":[2],"parameters":{"binary_data_size":%d}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`, c.name, len(c.data))
		if got := post(t, url, asBytes, c.data); got.code != 200 || !bytes.Equal(got.data, c.data) || got.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%s as bytes: got %d, %s and %x, want %x", c.name, got.code, got.text, got.data, c.data)
		}
	}
}

func ints(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, first+i)
	}
	return b.String()
}

// TestForms sends one request in all forms of the protocol.
func TestForms(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"simple/3/model.onnx": simple(), "simple/12/model.onnx": simple(), "double.onnx": doubling()})}})
	url := h.URL + "/v2/models/simple/infer"
	one := `{"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":[[` + ints(100, 16) + `]]}`
	text := `{"id":"42","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":[` + ints(0, 16) + `]},` + one + `],"outputs":[{"name":"OUTPUT1"}]}`
	differences := strings.TrimSuffix(strings.Repeat("-100,", 16), ",")
	wantCode(t, post(t, url, text, nil), 200, `{"model_name":"simple","model_version":"12","id":"42","outputs":[{"name":"OUTPUT1","datatype":"INT32","shape":[1,16],"data":[`+differences+`]}]}`)

	// One tensor as JSON, one as bytes; one output in each form.
	var zero [64]byte
	mixed := `{"inputs":[` + one + `,{"name":"INPUT0","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}}],"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}},{"name":"OUTPUT1"}]}`
	got := post(t, url, mixed, zero[:])
	wantCode(t, got, 200, `{"name":"OUTPUT0","datatype":"INT32","shape":[1,16],"parameters":{"binary_data_size":64}},{"name":"OUTPUT1","datatype":"INT32","shape":[1,16],"data":[-100,`)
	if len(got.data) != 64 || got.data[0] != 100 || got.data[60] != 115 {
		t.Errorf("got %v, want 100 to 115", got.data)
	}

	// Compressed, in both ways.
	for encoding, compress := range map[string]func(w io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }} {
		for _, binary := range []bool{false, true} {
			var b bytes.Buffer
			w := compress(&b)
			body := []byte(text)
			if binary {
				body = append([]byte(mixed), zero[:]...)
			}
			_, _ = w.Write(body)
			w.Close()
			r, _ := http.NewRequest("POST", url, &b)
			if binary {
				r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(mixed)))
			}
			r.Header.Set("Content-Encoding", encoding)
			wantCode(t, do(t, r), 200, `"data":[-100,-10`)
		}
	}

	// JSON in chunks, and a body that is one tensor.
	r, _ := http.NewRequest("POST", url, io.MultiReader(strings.NewReader(text[:100]), strings.NewReader(text[100:])))
	wantCode(t, do(t, r), 200, `[-100,-100,`)
	r, _ = http.NewRequest("POST", h.URL+"/v2/models/double/infer", bytes.NewReader(floatBytes([]float32{1, 2, 3, 4, 5, 6, 7, 8})))
	r.Header.Set("Inference-Header-Content-Length", "0")
	if got := do(t, r); !slices.Equal(floatsOf(got.data), []float32{2, 4, 6, 8, 10, 12, 14, 16}) {
		t.Errorf("without JSON: got %d, %s and %v", got.code, got.text, floatsOf(got.data))
	}
	wantCode(t, post(t, h.URL+"/v2/models/double/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[2,4],"data":[1,5,3,4, 0,0,9,8]}],"outputs":[{"name":"y","parameters":{"classification":2}}]}`, nil),
		200, `{"name":"y","datatype":"BYTES","shape":[2,2],"data":["10.000000:1","8.000000:3","18.000000:2","16.000000:3"]}`)
	wantCode(t, post(t, h.URL+"/v2/models/double/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[0,4],"data":[]}]}`, nil), 200, `"shape":[0,4],"data":[]`)
}

// TestSizesThatDataDecides runs models whose plans are known late, or leave an
// output open.
func TestSizesThatDataDecides(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"expand.onnx": expanding(), "nonzero.onnx": nonZero()})}, Memory: 64 << 20})
	expand := func(a, b int) reply {
		return post(t, h.URL+"/v2/models/expand/infer", fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[7]},{"name":"shape","datatype":"INT64","shape":[2],"data":[%d,%d]}]}`, a, b), nil)
	}
	wantCode(t, expand(2, 3), 200, `"shape":[2,3],"data":[7,7,7,7,7,7]`)
	wantCode(t, expand(1, 2), 200, `"shape":[1,2],"data":[7,7]`)
	wantCode(t, expand(10000, 10000), 413, "the request takes 381")
	wantCode(t, post(t, h.URL+"/v2/models/nonzero/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[5],"data":[1,0,0,2,3]}]}`, nil), 200, `"shape":[1,3],"data":[0,3,4]`)
	if got := s.ingress.figures(); got.used != 0 || got.most == 0 {
		t.Errorf("got %+v for what was read before its plan was known, want it used, and free again", got)
	}
}

// TestWrongRequests wants an error that says what is wrong, and nothing kept.
func TestWrongRequests(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling(), "text.onnx": identity(onnxtest.String), "lookup.onnx": lookup()})}, MaxBody: 1 << 20, Memory: 1 << 30, MaxBatch: 4})
	before := s.Memory().Promised
	x := func(shape, data string) string {
		return `{"inputs":[{"name":"x","datatype":"FP32","shape":` + shape + `,` + data + `}]}`
	}
	binary := func(n int) string { return fmt.Sprintf(`"parameters":{"binary_data_size":%d}`, n) }
	for _, c := range []struct {
		model, text string
		data        []byte
		code        int
		want        string
	}{
		{"none", x(`[1,4]`, `"data":[1,2,3,4]`), nil, 404, "Request for unknown model: 'none' is not found"},
		{"double/versions/7", x(`[1,4]`, `"data":[1,2,3,4]`), nil, 404, "Request for unknown model: 'double' version 7 is not found"},
		{"double", `{`, nil, 400, "got the end of the text"},
		{"double", ``, nil, 400, "got the end of the text"},
		{"double", `{}`, nil, 400, "expected 1 inputs but got 0 inputs for model 'double'"},
		{"double", `{"inputs":[{"name":"z","datatype":"FP32","shape":[1],"data":[1]}]}`, nil, 400, "unexpected inference input 'z' for model 'double'"},
		{"double", `{"inputs":[{"name":"x","datatype":"INT32","shape":[1,4],"data":[1,2,3,4]}]}`, nil, 400, "inference input 'x' data-type is 'INT32', but model 'double' expects 'FP32'"},
		{"double", x(`[1,5]`, `"data":[1,2,3,4,5]`), nil, 400, "unexpected shape for input 'x' for model 'double': expected [-1 4], got [1 5]"},
		{"double", x(`[4]`, `"data":[1,2,3,4]`), nil, 400, "unexpected shape"},
		{"double", x(`[5,4]`, binary(80)), make([]byte, 80), 400, "inference request batch-size must be <= 4 for 'double'"},
		{"double", x(`[2147483647,4]`, `"data":[1]`), nil, 400, "batch-size"},
		{"double", x(`[1,4]`, `"data":[1]`), nil, 400, "got fewer elements than the 4"},
		{"double", x(`[1,4]`, `"data":[1,2,3,"4"]`), nil, 400, "want a value"},
		{"double", x(`[1,4]`, `"id":0`), nil, 400, "input 'x': got no elements"},
		{"double", x(`[1,4]`, binary(16)), nil, 400, "input 'x': got no elements"},
		{"double", x(`[1,4]`, binary(12)), make([]byte, 12), 400, "unexpected total byte size 12 for input 'x', expecting 16"},
		{"double", x(`[1,4]`, binary(16)), make([]byte, 15), 400, "got 16 bytes of binary data, want at most the 15"},
		{"double", x(`[1,4]`, binary(16)), make([]byte, 17), 400, "got 1 bytes behind the tensors"},
		{"double", `{"inputs":[` + strings.TrimSuffix(strings.Repeat(`{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]},`, 2), ",") + `]}`, nil, 400, "input 'x' is given twice"},
		{"double", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}],"outputs":[{"name":"x"}]}`, nil, 400, "unexpected inference output 'x' for model 'double'"},
		{"double", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}],"outputs":[{"name":"y"},{"name":"y"}]}`, nil, 400, "output 'y' is named twice"},
		{"double", `{"parameters":{"sequence_id":5},"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`, nil, 501, "keeps no sequences"},
		{"double", strings.Repeat(" ", 1<<20) + `{}`, nil, 413, "larger than the server allows"},
		{"text", `{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"data":["a\u0000"]}]}`, nil, 400, "NUL"},
		{"text", `{"inputs":[{"name":"x","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":5}}]}`, []byte{1, 0, 0, 0, 'a'}, 400, "element 1: got 0 bytes"},
		{"lookup", `{"inputs":[{"name":"i","datatype":"INT64","shape":[1],"data":[10]}]}`, nil, 500, "10"},
	} {
		url := h.URL + "/v2/models/" + c.model + "/infer"
		got := post(t, url, c.text, c.data)
		if got.code != c.code || !strings.Contains(got.text, c.want) || !strings.HasPrefix(got.text, `{"error":"`) {
			t.Errorf("%s %.100s: got %d and %s, want %d and %q", c.model, c.text, got.code, got.text, c.code, c.want)
		}
	}
	// One that is refused before its body is read is told, nevertheless.
	large := make([]byte, 900<<10)
	wantCode(t, post(t, h.URL+"/v2/models/none/infer", x(`[1,4]`, binary(len(large))), large), 404, "unknown model")
	wantCode(t, post(t, h.URL+"/v2/models/double/infer", x(`[1,4]`, binary(len(large))), large), 400, "unexpected total byte size")
	for length, want := range map[string]string{"x": "want a number of bytes", "-1": "want a number of bytes", "99": "want at most the 2 bytes of the body", "99999999999": "want at most"} {
		r, _ := http.NewRequest("POST", h.URL+"/v2/models/double/infer", strings.NewReader("{}"))
		r.Header.Set("Inference-Header-Content-Length", length)
		wantCode(t, do(t, r), 400, want)
	}
	for _, body := range []string{"123", "not compressed"} {
		r, _ := http.NewRequest("POST", h.URL+"/v2/models/double/infer", strings.NewReader(body))
		r.Header.Set("Content-Encoding", "gzip")
		wantCode(t, do(t, r), 400, "")
	}
	wantCode(t, get(t, h.URL+"/v2/nothing"), 404, `{"error":"GET /v2/nothing is not found"}`)
	if got := s.Memory().Promised; got > before+1<<20 {
		t.Errorf("got %d bytes promised after requests that failed, %d before", got, before)
	}
}
