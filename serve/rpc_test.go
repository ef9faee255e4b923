package serve

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
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

// rawRow is the message of row, with its tensor.
func rawRow(t testing.TB, model string, first float32, n int) []byte {
	t.Helper()
	_, data := row(first, n)
	head := encode(t, inference+"ModelInfer", fmt.Sprintf(`{"model_name":%q,"id":"i","inputs":[{"name":"x","datatype":"FP32","shape":[%d,4]}]}`, model, n))
	return protobuf.AppendBytes(head, 7, data)
}

// TestSameAnswers sends the elements of every type by HTTP and by gRPC, there
// in both forms, and wants the same bytes back.
func TestSameAnswers(t *testing.T) {
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

// TestRPCErrors wants the code that clients decide by, and nothing kept.
func TestRPCErrors(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling(), "text.onnx": identity(onnxtest.String), "lookup.onnx": lookup(), "expand.onnx": expanding(), "halves.onnx": identity(f16)})}, MaxBody: 1 << 20, Memory: 16 << 20, MaxBatch: 4})
	before := s.Memory().Promised
	x := func(shape, more string) string {
		return `{"model_name":"double","inputs":[{"name":"x","datatype":"FP32","shape":` + shape + more + `}]}`
	}
	raw := func(text string, tensors ...int) []byte {
		data := encode(t, inference+"ModelInfer", text)
		for _, n := range tensors {
			data = protobuf.AppendBytes(data, 7, make([]byte, n))
		}
		return data
	}
	for _, c := range []struct {
		data []byte
		code grpc.Code
		want string
	}{
		{raw(`{"model_name":"none"}`), grpc.NotFound, "Request for unknown model: 'none' is not found"},
		{raw(`{"model_name":"double","model_version":"7"}`), grpc.NotFound, "Request for unknown model: 'double' version 7 is not found"},
		{nil, grpc.NotFound, "unknown model: ''"},
		{raw(`{"model_name":"double"}`), grpc.InvalidArgument, "expected 1 inputs but got 0 inputs"},
		{raw(x(`[1,4]`, ``)), grpc.InvalidArgument, "input 'x': got no elements"},
		{raw(x(`[1,5]`, ``), 20), grpc.InvalidArgument, "unexpected shape for input 'x' for model 'double': expected [-1 4], got [1 5]"},
		{raw(x(`[5,4]`, ``), 80), grpc.InvalidArgument, "inference request batch-size must be <= 4 for 'double'"},
		{raw(x(`[1,-4]`, ``), 16), grpc.InvalidArgument, "got the size -4"},
		{raw(x(`[1,4]`, ``), 12), grpc.InvalidArgument, "unexpected total byte size 12 for input 'x', expecting 16"},
		{raw(x(`[1,4]`, ``), 20), grpc.InvalidArgument, "unexpected total byte size 20 for input 'x', expecting 16"},
		{raw(x(`[1,4]`, ``), 16, 16), grpc.InvalidArgument, "got more raw_input_contents than inputs"},
		{raw(x(`[1,4]`, `,"contents":{"fp32_contents":[1,2,3,4]}`), 16), grpc.InvalidArgument, "contents field must not be specified when using raw_input_contents for 'x' for model 'double'"},
		{raw(x(`[1,4]`, `,"contents":{"fp32_contents":[1,2,3]}`)), grpc.InvalidArgument, "want 4 elements"},
		{raw(x(`[1,4]`, `,"contents":{"fp32_contents":[1,2,3,4,5]}`)), grpc.InvalidArgument, "got more than 4 elements"},
		{raw(x(`[1,4]`, `,"contents":{"int_contents":[1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4]}`)), grpc.InvalidArgument, "got elements in field 2 of the contents, want those of FP32 in field 6"},
		{raw(`{"model_name":"halves","inputs":[{"name":"x","datatype":"FP16","shape":[1],"contents":{"fp32_contents":[1]}}]}`), grpc.InvalidArgument, "got contents for FP16, want raw_input_contents"},
		{raw(`{"model_name":"double","inputs":[{"name":"x","datatype":"FP31","shape":[1]}]}`), grpc.InvalidArgument, `got the datatype "FP31"`},
		{raw(`{"model_name":"double","inputs":[{"name":"x","datatype":"INT32","shape":[1,4]}]}`, 16), grpc.InvalidArgument, "inference input 'x' data-type is 'INT32', but model 'double' expects 'FP32'"},
		{raw(`{"model_name":"double","inputs":[{"name":"x","datatype":"FP32","shape":[1,4]},{"name":"x","datatype":"FP32","shape":[1,4]}]}`, 16, 16), grpc.InvalidArgument, "input 'x' is given twice"},
		{raw(`{"model_name":"double","inputs":[{"name":"x","datatype":"FP32","shape":[1,4]}],"outputs":[{"name":"z"}]}`, 16), grpc.InvalidArgument, "unexpected inference output 'z'"},
		{raw(`{"model_name":"double","parameters":{"sequence_id":{"int64_param":5}},"inputs":[{"name":"x","datatype":"FP32","shape":[1,4]}]}`, 16), grpc.Unimplemented, "keeps no sequences"},
		{raw(`{"model_name":"double","parameters":{"priority":{"string_param":"x"}}}`), grpc.InvalidArgument, "priority: got x, want an integer"},
		{raw(`{"model_name":"double","inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"parameters":{"shared_memory_region":{"string_param":"r"},"shared_memory_byte_size":{"int64_param":16}}}]}`), grpc.Unimplemented, "system shared memory is not used here"},
		{append(raw(x(`[1,4]`, ``), 16), raw(`{"model_version":"1"}`)...), grpc.InvalidArgument, "got field 2 behind raw_input_contents"},
		{raw(`{"model_name":"text","inputs":[{"name":"x","datatype":"BYTES","shape":[2]}]}`, 5), grpc.InvalidArgument, "element 1: got 1 bytes"},
		{raw(`{"model_name":"text","inputs":[{"name":"x","datatype":"BYTES","shape":[2],"contents":{"bytes_contents":["","",""]}}]}`), grpc.InvalidArgument, "got more than 2 elements"},
		{raw(`{"model_name":"lookup","inputs":[{"name":"i","datatype":"INT64","shape":[1],"contents":{"int64_contents":[10]}}]}`), grpc.Internal, "10"},
		{raw(`{"model_name":"expand","inputs":[{"name":"x","datatype":"FP32","shape":[1],"contents":{"fp32_contents":[1]}},{"name":"shape","datatype":"INT64","shape":[2],"contents":{"int64_contents":[10000,10000]}}]}`), grpc.ResourceExhausted, "the request takes 381"},
		{make([]byte, 1<<20+1), grpc.ResourceExhausted, "got a message of 1048577 bytes, larger than the server allows, 1048576"},
		{[]byte{0xff}, grpc.InvalidArgument, "middle of a field"},
		{[]byte{0x0a, 0x05, 'a'}, grpc.InvalidArgument, "field 1: got a length of 5 bytes, want at most the 1"},
		{[]byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, grpc.InvalidArgument, "field 7: got a length of 18446744073709551615 bytes"},
		{[]byte("\xcc\xcc\xcc\xcc\xe5\xcc\xcc\xcc\xcc0"), grpc.InvalidArgument, "got a number of more than 64 bits"},
		{[]byte{0x0b}, grpc.InvalidArgument, "got the wire type 3"},
		{[]byte{0x00, 0x00}, grpc.InvalidArgument, "got the field number 0"},
		{[]byte{0x0a, 0x01, 0xff}, grpc.InvalidArgument, "want UTF-8"},
	} {
		got := send(t, h.URL, inference+"ModelInfer", bytes.NewReader(frame(c.data)))
		if got.code != int(c.code) || !strings.Contains(got.text, c.want) || len(got.messages) != 0 {
			t.Errorf("%.80q: got the code %d and %q, want %d and %q", c.data, got.code, got.text, c.code, c.want)
		}
	}
	wantStatus(t, send(t, h.URL, inference+"Nothing", nil), grpc.Unimplemented, "unknown method Nothing for service inference.GRPCInferenceService")
	wantStatus(t, send(t, h.URL, "/no.Service/Nothing", nil), grpc.Unimplemented, "unknown service no.Service")
	if got := s.Memory().Promised; got > before+1<<20 || s.ingress.figures().used != 0 {
		t.Errorf("got %d bytes promised after requests that failed, %d before", got, before)
	}
}

// compressions are those that clients know.
var compressions = map[string]func(w io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
}

// packed is a frame with a compressed message.
func packed(encoding string, data []byte) []byte {
	var b bytes.Buffer
	w := compressions[encoding](&b)
	_, _ = w.Write(data)
	w.Close()
	f := frame(b.Bytes())
	f[0] = 1
	return f
}

// TestFrames sends what is no gRPC, or only half of it.
func TestFrames(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, MaxBody: 1 << 20, Memory: 1 << 30})
	path, good := inference+"ModelInfer", rawRow(t, "double", 1, 1)
	for encoding := range compressions {
		f := packed(encoding, good)
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(f), "Grpc-Encoding", encoding), grpc.OK, "")
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(packed(encoding, rawRow(t, "double", 1, 10000))), "Grpc-Encoding", encoding), grpc.OK, "")
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(frame(good)), "Grpc-Encoding", encoding), grpc.OK, "") // a flag of 0
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(f)), grpc.Internal, "got a compressed message without grpc-encoding")
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(packed(encoding, make([]byte, 8<<20))), "Grpc-Encoding", encoding), grpc.InvalidArgument, "field number 0")
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(packed(encoding, protobuf.AppendBytes(nil, 3, make([]byte, 8<<20)))), "Grpc-Encoding", encoding), grpc.InvalidArgument, "want at most the 104857")
		wantStatus(t, send(t, h.URL, inference+"ServerLive", bytes.NewReader(packed(encoding, make([]byte, 8<<20))), "Grpc-Encoding", encoding), grpc.ResourceExhausted, "larger than the server allows when it is decompressed")
		for _, at := range []int{5, len(f) / 2, len(f) - 3} {
			wrong := bytes.Clone(f)
			wrong[at] ^= 0x55
			if got := send(t, h.URL, path, bytes.NewReader(wrong), "Grpc-Encoding", encoding); got.code != int(grpc.InvalidArgument) && got.code != 0 {
				t.Errorf("%s with a changed byte %d: got the code %d and %q, want a refusal", encoding, at, got.code, got.text)
			}
		}
	}
	wantStatus(t, send(t, h.URL, path, bytes.NewReader(packed("gzip", good)), "Grpc-Encoding", "zstd"), grpc.Unimplemented, `grpc-encoding: got "zstd", want one of identity,gzip,deflate`)
	whole := frame(good)
	for n := range whole {
		wantStatus(t, send(t, h.URL, path, bytes.NewReader(whole[:n])), grpc.InvalidArgument, "")
	}
	wantStatus(t, send(t, h.URL, path, bytes.NewReader([]byte{7, 0, 0, 0, 0})), grpc.Internal, "begins with 7")
	wantStatus(t, send(t, h.URL, path, bytes.NewReader([]byte{0, 255, 255, 255, 255})), grpc.ResourceExhausted, "4294967295 bytes")
	wantStatus(t, send(t, h.URL, path, bytes.NewReader(whole), "Grpc-Timeout", "1x"), grpc.InvalidArgument, "grpc-timeout")
	wantStatus(t, send(t, h.URL, path, bytes.NewReader(whole), "Grpc-Timeout", "0n"), grpc.DeadlineExceeded, "deadline")
	wantStatus(t, send(t, h.URL, path, bytes.NewReader(whole), "Grpc-Timeout", "99999999H"), grpc.OK, "")
	for header, code := range map[string]int{"application/grpc-web": 415, "application/grpc+json": 415, "application/grpcx": 415, "application/json": 404} {
		if got := send(t, h.URL, path, bytes.NewReader(whole), "Content-Type", header); got.code != -code {
			t.Errorf("%s: got %d and %s, want the status %d of HTTP", header, got.code, got.text, code)
		}
	}
	r, _ := http.NewRequest("POST", h.URL+path, bytes.NewReader(whole))
	r.Header.Set("Content-Type", "application/grpc")
	wantCode(t, do(t, r), 505, "got gRPC over HTTP/1.1, want HTTP/2")
	r, _ = http.NewRequest("GET", h.URL+path, nil)
	r.Header.Set("Content-Type", "application/grpc")
	if a, err := rpcClient.Do(r); err != nil || a.StatusCode != 405 {
		t.Errorf("GET: got %v, %v, want 405", a, err)
	} else {
		a.Body.Close()
	}
}
