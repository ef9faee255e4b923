package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// picture is the number of elements of the pictures that many models take.
const picture = 3 * 224 * 224

// classifier takes a picture and returns a thousand numbers.
func classifier() []byte {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", picture)
	g.Ints("starts", 0)
	g.Ints("ends", 1000)
	g.Ints("axes", 1)
	g.Node("Slice", []string{"x", "starts", "ends", "axes"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, "batch", 1000)
	return g.File()
}

// asked is a binary request for the model of classifier.
func asked() (text string, body []byte) {
	text = fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}`, picture, 4*picture)
	return text, append([]byte(text), make([]byte, 4*picture)...)
}

// nowhere is an answer of which only the length is kept.
type nowhere struct {
	header http.Header
	code   int
	n      int
}

func (w *nowhere) Header() http.Header  { return w.header }
func (w *nowhere) WriteHeader(code int) { w.code = code }
func (w *nowhere) Write(p []byte) (int, error) {
	w.n += len(p)
	return len(p), nil
}

// TestNoCopyOfTensors wants the Go heap without tensors: what a request of
// 600 kB allocates there does not depend on its size.
func TestNoCopyOfTensors(t *testing.T) {
	s, err := New(t.Context(), Config{Paths: []string{write(t, map[string][]byte{"m.onnx": classifier()})}, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, body := asked()
	message := frame(askedMessage(t))
	for name, request := range map[string]func() *http.Request{
		"HTTP": func() *http.Request {
			r := httptest.NewRequest("POST", "/v2/models/m/infer", bytes.NewReader(body))
			r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
			return r
		},
		"gRPC": func() *http.Request { return asCall(t, inference+"ModelInfer", message) },
	} {
		ask := func() {
			w := &nowhere{header: http.Header{}, code: 200}
			s.ServeHTTP(w, request())
			if w.code != 200 || w.n < 4000 {
				t.Fatalf("%s: got %d, %q and %d bytes, want 200 and 1000 numbers", name, w.code, w.header.Get(http.TrailerPrefix+"Grpc-Message"), w.n)
			}
		}
		ask()
		const runs = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			ask()
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / runs; got > 4*picture/10 {
			t.Errorf("%s: got %d bytes of the Go heap for each request of %d bytes, want no tensors there", name, got, 4*picture)
		}
	}
}

// askedMessage is the same request as a message of gRPC.
func askedMessage(t testing.TB) []byte {
	head := encode(t, inference+"ModelInfer", fmt.Sprintf(`{"model_name":"m","inputs":[{"name":"x","datatype":"FP32","shape":[1,%d]}]}`, picture))
	return protobuf.AppendBytes(head, 7, make([]byte, 4*picture))
}

// asCall is a call of gRPC without a connection.
func asCall(t testing.TB, path string, body []byte) *http.Request {
	r := httptest.NewRequest("POST", path, bytes.NewReader(body))
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	r.Header.Set("Content-Type", "application/grpc")
	return r
}

// BenchmarkRPC asks for the answer to a picture over the loopback, by gRPC.
func BenchmarkRPC(b *testing.B) {
	_, h := start(b, Config{Paths: []string{write(b, map[string][]byte{"m.onnx": classifier()})}, Memory: 1 << 30})
	body := frame(askedMessage(b))
	for b.Loop() {
		r, _ := http.NewRequest("POST", h.URL+inference+"ModelInfer", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/grpc")
		a, err := rpcClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil || a.Trailer.Get("Grpc-Status") != "0" {
			b.Fatal(a.Trailer, err)
		}
		a.Body.Close()
	}
}

// BenchmarkBinary asks for the answer to a picture over the loopback.
func BenchmarkBinary(b *testing.B) {
	_, h := start(b, Config{Paths: []string{write(b, map[string][]byte{"m.onnx": classifier()})}, Memory: 1 << 30})
	text, body := asked()
	exchange(b, h.URL+"/v2/models/m/infer", text, body)
}

// BenchmarkPlain is the same exchange with a server that does nothing but read
// the bytes into one buffer and write others: what HTTP takes by itself.
func BenchmarkPlain(b *testing.B) {
	buffer, out := make([]byte, 5*picture), make([]byte, 4000)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, buffer[:r.ContentLength]); err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Length", "4000")
		_, _ = w.Write(out)
	}))
	defer h.Close()
	text, body := asked()
	exchange(b, h.URL, text, body)
}

func exchange(b *testing.B, url, text string, body []byte) {
	for b.Loop() {
		r, _ := http.NewRequest("POST", url, bytes.NewReader(body))
		r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != 200 {
			b.Fatal(a.Status, err)
		}
		a.Body.Close()
	}
}
