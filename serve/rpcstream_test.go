package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/serve/internal/grpc"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// stream is a call that is under way.
type stream struct {
	t      *testing.T
	path   string
	in     *io.PipeWriter
	answer *http.Response
}

// openStream begins a call; the answer's head has come.
func openStream(t *testing.T, ctx context.Context, base, path string, first []byte) *stream {
	t.Helper()
	r, w := io.Pipe()
	q, err := http.NewRequestWithContext(ctx, "POST", base+path, r)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/grpc")
	go func() { _, _ = w.Write(first) }()
	a, err := rpcClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); a.Body.Close() })
	return &stream{t, path, w, a}
}

// next reads a message of the answer.
func (s *stream) next() map[string]any {
	s.t.Helper()
	var h [5]byte
	if _, err := io.ReadFull(s.answer.Body, h[:]); err != nil {
		s.t.Fatal(err)
	}
	data := make([]byte, binary.BigEndian.Uint32(h[1:]))
	if _, err := io.ReadFull(s.answer.Body, data); err != nil {
		s.t.Fatal(err)
	}
	m, err := methodOf(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := m.Output.Decode(data)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// end reads the end of the answer, and returns its status.
func (s *stream) end() string {
	s.t.Helper()
	if n, err := io.Copy(io.Discard, s.answer.Body); err != nil || n != 0 {
		s.t.Errorf("got %d bytes and %v, want the end", n, err)
	}
	return s.answer.Trailer.Get("Grpc-Status")
}

// TestStream wants the answers of a stream in order, errors among them, and
// requests that are read while the first ones wait to run together.
func TestStream(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30, MaxBatch: 64, MaxBody: 1 << 20})
	path := inference + "ModelStreamInfer"
	s := openStream(t, t.Context(), h.URL, path, frame(rawRow(t, "double", 0, 1)))
	doubled := func(v map[string]any, first float32) {
		t.Helper()
		r, _ := v["infer_response"].(map[string]any)
		raw, _ := r["raw_output_contents"].([]any)
		if len(raw) != 1 || floatsOf(raw[0].([]byte))[0] != 2*first || r["id"] != "i" {
			t.Errorf("got %v, want %v doubled", v, first)
		}
		if final := r["parameters"].(map[string]any)["triton_final_response"]; fmt.Sprint(final) != "map[bool_param:true]" {
			t.Errorf("got %v, want the final answer", final)
		}
	}
	doubled(s.next(), 0)
	const n = 200
	go func() {
		for i := range n {
			data := rawRow(t, "double", float32(i), 1+i%3)
			switch i % 10 {
			case 5:
				data = encode(t, inference+"ModelInfer", `{"model_name":"none","id":"i"}`)
			case 7:
				data = append(data, 0) // behind its tensor
			}
			_, _ = s.in.Write(frame(data))
		}
		s.in.Close()
	}()
	for i := range n {
		v := s.next()
		want := map[int]string{5: "unknown model: 'none'", 7: "middle of a field"}[i%10]
		if want == "" {
			doubled(v, float32(i))
			continue
		}
		r, _ := v["infer_response"].(map[string]any)
		if text, _ := v["error_message"].(string); !strings.Contains(text, want) || r["id"] != "i" {
			t.Errorf("answer %d: got %v, want %q", i, v, want)
		}
	}
	if got := s.end(); got != "0" {
		t.Errorf("got the status %s, want 0", got)
	}
	// What is no frame ends it.
	got := send(t, h.URL, path, bytes.NewReader(append(frame(rawRow(t, "double", 4, 1)), 9, 0, 0, 0, 0)))
	if wantStatus(t, got, grpc.Internal, "begins with 9"); len(got.messages) != 1 {
		t.Errorf("got %d answers before that, want one", len(got.messages))
	} else {
		doubled(got.messages[0], 4)
	}
}

// TestBatchOfAStream wants the requests of one stream to run together.
func TestBatchOfAStream(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30, MaxBatch: 8})
	free := occupy(t, s, "double")
	var body []byte
	for i := range 9 {
		body = append(body, frame(rawRow(t, "double", float32(i), 1))...)
	}
	done := make(chan called, 1)
	go func() { done <- send(t, h.URL, inference+"ModelStreamInfer", bytes.NewReader(body)) }()
	until(t, "eight of them wait for the run of the first", func() bool {
		m, err := s.use("double", "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.done()
		m.queue.mu.Lock()
		defer m.queue.mu.Unlock()
		return len(m.queue.waiting) == 8
	})
	free()
	if got := <-done; got.code != 0 || len(got.messages) != 9 {
		t.Errorf("got the code %d, %q and %d answers", got.code, got.text, len(got.messages))
	}
	if answered, runs := counts(t, h, "double"); answered != 9 || runs > 4 {
		t.Errorf("got %d answers by %d runs, want 9 by few", answered, runs)
	}
}

// free wants nothing to be held for any request.
func wantFree(t *testing.T, s *Server) {
	t.Helper()
	until(t, "nothing is held", func() bool {
		m, err := s.use("double", "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.done()
		return m.isIdle() && m.queue.length() == 0 && s.ingress.figures().used == 0
	})
}

// TestCallersThatStop sends parts of messages of every length, and hangs up or
// waits.
func TestCallersThatStop(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Stall: 50 * time.Millisecond, Memory: 1 << 30})
	whole := frame(rawRow(t, "double", 1, 3))
	var all sync.WaitGroup
	for _, method := range []string{"ModelInfer", "ModelStreamInfer"} {
		for n := 0; n < len(whole); n += 3 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r, w := io.Pipe()
				q, _ := http.NewRequestWithContext(ctx, "POST", h.URL+inference+method, r)
				q.Header.Set("Content-Type", "application/grpc")
				go func() {
					_, _ = w.Write(whole[:n])
					if n%2 == 0 || n == 0 && method == "ModelStreamInfer" { // a stream may wait
						cancel()
					}
				}()
				defer w.Close()
				a, err := rpcClient.Do(q)
				if err != nil {
					return
				}
				defer a.Body.Close()
				if _, err := io.Copy(io.Discard, a.Body); err != nil {
					return
				}
				if got := a.Trailer.Get("Grpc-Status"); got != "3" {
					t.Errorf("%s, %d bytes: got the status %s, want 3", method, n, got)
				}
			})
		}
	}
	all.Wait()
	// Another one is answered, without a connection that could stop.
	w := &nowhere{header: http.Header{}, code: 200}
	r := asCall(t, inference+"ModelInfer", whole)
	s.ServeHTTP(w, r)
	if got := w.header.Get(http.TrailerPrefix + "Grpc-Status"); got != "0" {
		t.Errorf("got the status %s for another one, want 0", got)
	}
	wantFree(t, s)
}

// TestCallIsCancelled ends calls whose run has not begun: by the client, by its
// deadline, and by the time that it gives in the request.
func TestCallIsCancelled(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	free := occupy(t, s, "double")
	whole := frame(rawRow(t, "double", 1, 3))
	wantStatus(t, send(t, h.URL, inference+"ModelInfer", bytes.NewReader(whole), "Grpc-Timeout", "20m"), grpc.DeadlineExceeded, "the deadline of the call has passed")
	timed := append(encode(t, inference+"ModelInfer", `{"parameters":{"timeout":{"int64_param":20000}}}`), rawRow(t, "double", 1, 1)...)
	wantStatus(t, send(t, h.URL, inference+"ModelInfer", bytes.NewReader(frame(timed))), grpc.DeadlineExceeded, "request timeout expired after 20ms")
	ctx, cancel := context.WithCancel(t.Context())
	q, _ := http.NewRequestWithContext(ctx, "POST", h.URL+inference+"ModelInfer", bytes.NewReader(whole))
	q.Header.Set("Content-Type", "application/grpc")
	m, err := s.use("double", "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.done()
	ended := make(chan error, 1)
	go func() {
		_, err := rpcClient.Do(q)
		ended <- err
	}()
	until(t, "it is under way", func() bool { return !m.isIdle() })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	until(t, "it is not under way any more", m.isIdle)
	free()
	wantFree(t, s)
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	// The deadline may have passed before the model was known.
	for why, n := range map[string]int64{"REJECTED": 1, "CANCELED": 1} {
		if got := m.stats.failures[why]; got == nil || got.count < n || got.count > 2*n {
			t.Errorf("got %v as %s, want %d or one more", got, why, n)
		}
	}
}

// TestCallersThatDoNotRead asks for answers that are larger than the windows of
// HTTP/2, and does not take them.
func TestCallersThatDoNotRead(t *testing.T) {
	const n = 4 << 20
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 1)
	g.Ints("shape", n)
	g.Node("Expand", []string{"x", "shape"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, n)
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": g.File()})}, Stall: 50 * time.Millisecond, Memory: 1 << 30})
	data := protobuf.AppendBytes(encode(t, inference+"ModelInfer", `{"model_name":"double","inputs":[{"name":"x","datatype":"FP32","shape":[1]}]}`), 7, make([]byte, 4))
	for _, method := range []string{"ModelInfer", "ModelStreamInfer"} {
		_ = openStream(t, t.Context(), h.URL, inference+method, frame(data))
		wantFree(t, s)
	}
}

// TestShutdownOfCalls ends the server while calls are under way: what has begun
// is answered, and streams that wait for their client end.
func TestShutdownOfCalls(t *testing.T) {
	s, _ := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	watch := openStream(t, t.Context(), url, "/grpc.health.v1.Health/Watch", frame(nil))
	if got := watch.next(); got["status"] != "SERVING" {
		t.Errorf("got %v, want it serving", got)
	}
	watch.in.Close()
	whole := frame(rawRow(t, "double", 3, 1))
	idle := openStream(t, t.Context(), url, inference+"ModelStreamInfer", whole)
	idle.next()
	free := occupy(t, s, "double")
	_, _ = idle.in.Write(whole)
	done := make(chan called, 1)
	go func() { done <- send(t, url, inference+"ModelInfer", bytes.NewReader(whole)) }()
	m, err := s.use("double", "")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "two requests are under way", func() bool {
		m.queue.mu.Lock()
		defer m.queue.mu.Unlock()
		return len(m.queue.waiting) == 1
	})
	m.done()
	cancel()
	if got := watch.next(); got["status"] != "NOT_SERVING" {
		t.Errorf("got %v, want it to be ending", got)
	}
	if got := watch.end(); got != "14" {
		t.Errorf("got the status %s of a watch, want 14", got)
	}
	free()
	if got := <-done; got.code != 0 || len(got.messages) != 1 {
		t.Errorf("got %+v, want an answer", got)
	}
	if v := idle.next(); v["error_message"] != nil {
		t.Errorf("got %v, want an answer", v)
	}
	if got := idle.end(); got != "14" {
		t.Errorf("got the status %s of a stream, want 14", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestGarbageOfCalls sends messages with bytes that were changed: whatever is
// answered, the server goes on.
func TestGarbageOfCalls(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	r := rand.New(rand.NewPCG(7, 8))
	good := rawRow(t, "double", 1, 2)
	for range 300 {
		data := bytes.Clone(good)
		for range 1 + r.IntN(4) {
			data[r.IntN(len(data)-32)] = byte(r.Uint32())
		}
		method := []string{"ModelInfer", "ModelStreamInfer", "ModelMetadata", "RepositoryModelLoad"}[r.IntN(4)]
		got := send(t, h.URL, inference+method, bytes.NewReader(frame(data)))
		if got.code < 0 || got.code == int(grpc.Internal) || got.code == int(grpc.Unknown) {
			t.Errorf("%s of %q: got the code %d and %q, want a refusal as the client's fault", method, data, got.code, got.text)
		}
	}
	for range 20 {
		c := dial(t, h.URL)
		junk := make([]byte, 2000)
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		_, _ = c.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), junk...))
		c.Close()
	}
	wantStatus(t, send(t, h.URL, inference+"ModelInfer", bytes.NewReader(frame(good))), grpc.OK, "")
	wantFree(t, s)
}

// TestOneConnection sends more over one connection than the budget has room
// for, and than the connection's window takes. Requests that wait must not keep
// those that have memory from going on.
func TestOneConnection(t *testing.T) {
	const rows = 50_000
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 4 << 20})
	whole := frame(rawRow(t, "double", 1, rows))
	var all sync.WaitGroup
	var answered, refused atomic.Int32
	for range 40 {
		all.Go(func() {
			for range 10 {
				q, _ := http.NewRequest("POST", h.URL+inference+"ModelInfer", iotest.HalfReader(bytes.NewReader(whole)))
				q.Header.Set("Content-Type", "application/grpc")
				a, err := rpcClient.Do(q)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, a.Body)
				a.Body.Close()
				switch got := a.Trailer.Get("Grpc-Status"); {
				case err == nil && got == "0" && n > 16*rows:
					answered.Add(1)
				case err == nil && got == "14":
					refused.Add(1)
				default:
					t.Errorf("got the status %q, %d bytes and %v", got, n, err)
				}
			}
		})
	}
	all.Wait()
	if answered.Load() == 0 {
		t.Errorf("got no answers and %d refusals", refused.Load())
	}
	t.Logf("got %d answers and %d refusals", answered.Load(), refused.Load())
	wantFree(t, s)
}
