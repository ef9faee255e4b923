package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/serve/internal/grpc"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

const inference = "/inference.GRPCInferenceService/"

// rpcClient speaks HTTP/2 without TLS.
var rpcClient = func() *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: &p}}
}()

// frame is a message with what stands in front of it.
func frame(data []byte) []byte {
	h, _ := grpc.Header(len(data))
	return append(h[:], data...)
}

// called is the outcome of a call.
type called struct {
	code     int
	text     string
	messages []map[string]any
}

// send makes a call with a body of any bytes.
func send(t testing.TB, base, path string, body io.Reader, header ...string) called {
	t.Helper()
	r, err := http.NewRequest("POST", base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := rpcClient.Do(r)
	if err != nil {
		t.Error(err)
		return called{code: -1, text: err.Error()}
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	if err != nil {
		return called{code: -1, text: err.Error()}
	}
	got := called{code: -2}
	if a.StatusCode != http.StatusOK {
		return called{code: -a.StatusCode, text: string(data)}
	}
	if n, err := strconv.Atoi(a.Trailer.Get("Grpc-Status")); err == nil {
		got.code = n
	}
	if got.text, err = url.PathUnescape(a.Trailer.Get("Grpc-Message")); err != nil {
		t.Error(err)
	}
	m, err := methodOf(path)
	if err != nil {
		return got
	}
	for len(data) > 0 {
		n := binary.BigEndian.Uint32(data[1:])
		v, err := m.Output.Decode(data[5 : 5+n])
		if err != nil {
			t.Error(err)
		}
		got.messages = append(got.messages, v)
		data = data[5+n:]
	}
	return got
}

// encode writes a message of a method, given in JSON.
func encode(t testing.TB, path, text string) []byte {
	t.Helper()
	m, err := methodOf(path)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v := map[string]any{}
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	data, err := m.Input.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// invoke makes a call with messages in JSON.
func invoke(t testing.TB, base, path string, texts ...string) called {
	t.Helper()
	var body []byte
	for _, text := range texts {
		body = append(body, frame(encode(t, path, text))...)
	}
	return send(t, base, path, bytes.NewReader(body))
}

// wantStatus wants a call to end with the code, and a text that has the part.
func wantStatus(t testing.TB, got called, code grpc.Code, part string) {
	t.Helper()
	if got.code != int(code) || !strings.Contains(got.text, part) {
		t.Errorf("got the code %d and %q, want %d and %q", got.code, got.text, code, part)
	}
}

// stop ends what the tests' client keeps.
func stopRPC(t testing.TB) { t.Cleanup(rpcClient.CloseIdleConnections) }

// rawRow is the message of row, with its tensor.
func rawRow(t testing.TB, model string, first float32, n int) []byte {
	t.Helper()
	_, data := row(first, n)
	head := encode(t, inference+"ModelInfer", fmt.Sprintf(`{"model_name":%q,"id":"i","inputs":[{"name":"x","datatype":"FP32","shape":[%d,4]}]}`, model, n))
	return protobuf.AppendBytes(head, 7, data)
}

// TestSameAnswers sends the elements of every type by HTTP and by gRPC, there in
// both forms, and wants the same bytes back.
func TestSameAnswers(t *testing.T) {
	stopRPC(t)
	cases := []struct {
		name     string
		elem     int64
		field    string
		contents string
		data     []byte
	}{
		{"BOOL", onnxtest.Bool, "bool_contents", `[true,false]`, []byte{1, 0}},
		{"UINT8", u8, "uint_contents", `[255,1]`, []byte{255, 1}},
		{"INT8", i8, "int_contents", `[-1,1]`, []byte{255, 1}},
		{"UINT16", u16, "uint_contents", `[65535,1]`, []byte{255, 255, 1, 0}},
		{"INT16", i16, "int_contents", `[-2,1]`, []byte{254, 255, 1, 0}},
		{"UINT32", u32, "uint_contents", `[4294967295,1]`, []byte{255, 255, 255, 255, 1, 0, 0, 0}},
		{"INT32", onnxtest.I32, "int_contents", `[-2,1]`, []byte{254, 255, 255, 255, 1, 0, 0, 0}},
		{"UINT64", u64, "uint64_contents", `[18446744073709551615,1]`, []byte{255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0}},
		{"INT64", onnxtest.I64, "int64_contents", `[-2,1]`, []byte{254, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0}},
		{"FP16", f16, "", "", []byte{0, 0xbe, 0, 0x7c}},
		{"BF16", bf16, "", "", []byte{0xc0, 0xbf, 0x80, 0x3f}},
		{"FP32", onnxtest.F32, "fp32_contents", `[-1.5,0.1]`, floatBytes([]float32{-1.5, 0.1})},
		{"FP64", f64, "fp64_contents", `[-1.5,1]`, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0xbf, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{"BYTES", onnxtest.String, "bytes_contents", `["","w6kieA=="]`, append([]byte{0, 0, 0, 0, 4, 0, 0, 0}, "é\"x"...)},
	}
	files := map[string][]byte{}
	for _, c := range cases {
		files[c.name+".onnx"] = identity(c.elem)
	}
	_, h := start(t, Config{Paths: []string{write(t, files)}, Memory: 1 << 30})
	for _, c := range cases {
		asBytes := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":%q,"shape":[2],"parameters":{"binary_data_size":%d}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`, c.name, len(c.data))
		want := post(t, h.URL+"/v2/models/"+c.name+"/infer", asBytes, c.data)
		if want.code != 200 || !bytes.Equal(want.data, c.data) {
			t.Fatalf("%s by HTTP: got %d and %x, want %x", c.name, want.code, want.data, c.data)
		}
		head := func(contents string) []byte {
			return encode(t, inference+"ModelInfer", fmt.Sprintf(`{"model_name":%q,"inputs":[{"name":"x","datatype":%q,"shape":[2]%s}]}`, c.name, c.name, contents))
		}
		forms := map[string][]byte{
			"raw":         protobuf.AppendBytes(head(""), 7, c.data),
			"raw, first":  append(protobuf.AppendBytes(nil, 7, c.data), head("")...),
			"more fields": append(append(protobuf.AppendBytes(protobuf.AppendNumber(nil, 99, 5), 98, "skip me"), protobuf.AppendBytes(head(""), 7, c.data)...), protobuf.AppendNumber(nil, 99, 5)...),
		}
		if c.field != "" {
			forms["contents"] = head(`,"contents":{"` + c.field + `":` + c.contents + `}`)
		}
		for form, data := range forms {
			got := send(t, h.URL, inference+"ModelInfer", bytes.NewReader(frame(data)))
			if got.code != 0 || len(got.messages) != 1 {
				t.Errorf("%s, %s: got the code %d, %q and %d messages", c.name, form, got.code, got.text, len(got.messages))
				continue
			}
			m := got.messages[0]
			raw, _ := m["raw_output_contents"].([]any)
			if len(raw) != 1 || !bytes.Equal(raw[0].([]byte), c.data) || m["model_name"] != c.name || m["model_version"] != "1" {
				t.Errorf("%s, %s: got %v, want %x", c.name, form, m, c.data)
			}
			if out := m["outputs"].([]any)[0].(map[string]any); out["datatype"] != c.name || fmt.Sprint(out["shape"]) != "[2]" || out["name"] != "y" {
				t.Errorf("%s, %s: got the output %v", c.name, form, out)
			}
		}
	}
}
