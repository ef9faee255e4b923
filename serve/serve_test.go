package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// The numbers of element types in ONNX files that onnxtest does not name.
const u8, i8, u16, i16, f16, f64, u32, u64, bf16 = 2, 3, 4, 5, 10, 11, 12, 13, 16

// doubling has y = x + x, of rows of four numbers.
func doubling() []byte {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", 4)
	g.Node("Add", []string{"x", "x"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, "batch", 4)
	return g.File()
}

// simple is the model of Triton's examples: sums and differences.
func simple() []byte {
	var g onnxtest.Graph
	g.Input("INPUT0", onnxtest.I32, "batch", 16)
	g.Input("INPUT1", onnxtest.I32, "batch", 16)
	g.Node("Add", []string{"INPUT0", "INPUT1"}, []string{"OUTPUT0"})
	g.Node("Sub", []string{"INPUT0", "INPUT1"}, []string{"OUTPUT1"})
	g.OutputOf("OUTPUT0", onnxtest.I32, "batch", 16)
	g.OutputOf("OUTPUT1", onnxtest.I32, "batch", 16)
	return g.File()
}

// identity returns its input of any length.
func identity(elem int64) []byte {
	var g onnxtest.Graph
	g.Input("x", elem, "n")
	g.Node("Identity", []string{"x"}, []string{"y"})
	g.OutputOf("y", elem, "n")
	return g.File()
}

// lookup returns rows of a table of ten; other indices fail.
func lookup() []byte {
	var g onnxtest.Graph
	table := make([]float32, 20)
	for i := range table {
		table[i] = float32(i)
	}
	g.Weight("table", onnxtest.F32, floatBytes(table), 10, 2)
	g.Input("i", onnxtest.I64, "batch")
	g.Node("Gather", []string{"table", "i"}, []string{"y"}, onnxtest.Int("axis", 0))
	g.OutputOf("y", onnxtest.F32, "batch", 2)
	return g.File()
}

// expanding has sizes that the values of an input decide.
func expanding() []byte {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 1)
	g.Input("shape", onnxtest.I64, 2)
	g.Node("Expand", []string{"x", "shape"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, "a", "b")
	return g.File()
}

// nonZero has an output whose size depends on data.
func nonZero() []byte {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n")
	g.Node("NonZero", []string{"x"}, []string{"y"})
	g.OutputOf("y", onnxtest.I64, 1, "found")
	return g.File()
}

func floatBytes(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func floatsOf(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// write writes the files of a repository and returns its folder.
func write(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// start serves until the test ends; then nothing may be left behind.
func start(t testing.TB, c Config) (*Server, *live) {
	t.Helper()
	memorytest.Check(t)
	c.Patience = or(c.Patience, 10*time.Minute) // whatever else the machine does
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		rpcClient.CloseIdleConnections()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
		if got := s.Memory(); got.Promised != 0 || got.Waiting != 0 {
			t.Errorf("got %+v after the end, want nothing promised", got)
		}
	})
	return s, &live{URL: "http://" + l.Addr().String()}
}

// live is a server under its address.
type live struct{ URL string }

// reply is an answer, with its parts.
type reply struct {
	code    int
	header  http.Header
	text    string // JSON
	data    []byte // behind it
	outputs []struct {
		Name     string
		Datatype string
		Shape    []int
		Data     []any
	}
}

// post sends a request; with data it is binary.
func post(t testing.TB, url, text string, data []byte) reply {
	t.Helper()
	r, err := http.NewRequest("POST", url, bytes.NewReader(append([]byte(text), data...)))
	if err != nil {
		t.Fatal(err)
	}
	if data != nil {
		r.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(text)))
	}
	return do(t, r)
}

func do(t testing.TB, r *http.Request) reply {
	t.Helper()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err) // not Fatal: some tests call it from other goroutines
		return reply{}
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Error(err)
	}
	got := reply{code: a.StatusCode, header: a.Header, text: string(body)}
	if h := a.Header.Get("Inference-Header-Content-Length"); h != "" {
		n, _ := strconv.Atoi(h)
		got.text, got.data = string(body[:n]), body[n:]
	}
	if a.StatusCode == http.StatusOK {
		var v struct {
			Outputs *[]struct {
				Name     string
				Datatype string
				Shape    []int
				Data     []any
			}
		}
		v.Outputs = &got.outputs
		_ = json.Unmarshal([]byte(got.text), &v) // not every answer has outputs
	}
	return got
}

func get(t testing.TB, url string) reply {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

// row is a request for the model of doubling, with n rows that begin at first.
func row(first float32, n int) (text string, data []byte) {
	v := make([]float32, 4*n)
	for i := range v {
		v[i] = first + float32(i)
	}
	return fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,4],"parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}`, n, 16*n), floatBytes(v)
}

// wantDoubled compares an answer with the request of row.
func wantDoubled(t testing.TB, got reply, first float32, n int) {
	t.Helper()
	v := floatsOf(got.data)
	if got.code != http.StatusOK || len(v) != 4*n {
		t.Errorf("got %d, %s and %d numbers, want 200 and %d", got.code, got.text, len(v), 4*n)
		return
	}
	for i := range v {
		if want := 2 * (first + float32(i)); v[i] != want {
			t.Errorf("number %d: got %v, want %v", i, v[i], want)
			return
		}
	}
}

// wantCode wants an answer of that code whose text has the part.
func wantCode(t testing.TB, got reply, code int, part string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.text, part) {
		t.Errorf("got %d and %s, want %d and %q", got.code, got.text, code, part)
	}
}
