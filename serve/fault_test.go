package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/serve/internal/grpc"
)

// dial connects to the server without a client that knows HTTP.
func dial(t testing.TB, url string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// untilItEnds reads from a connection until the other side ends it.
func untilItEnds(c net.Conn) ([]byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return answer, err
	}
	return answer, nil // it may end with a reset
}

// head is the head of a request for the model of doubling.
func head(text string, whole int) string {
	return fmt.Sprintf("POST /v2/models/double/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nInference-Header-Content-Length: %d\r\n\r\n%s", whole, len(text), text)
}

// TestClientsThatStop sends parts of requests of every length, and hangs up or
// waits. What was promised for them is free again, and others are answered.
func TestClientsThatStop(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Stall: 50 * time.Millisecond, Memory: 1 << 30})
	text, data := row(1, 3)
	whole := head(text, len(text)+len(data)) + string(data)
	before := s.Memory().Promised
	var open []net.Conn
	for n := 0; n < len(whole); n += 9 {
		c := dial(t, h.URL)
		if _, err := io.WriteString(c, whole[:n]); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			c.Close()
		} else {
			open = append(open, c)
		}
	}
	// Another one is answered. It has no connection, on which a busy machine
	// could take it for one that stops.
	other := httptest.NewRequest("POST", "/v2/models/double/infer", strings.NewReader(text+string(data)))
	other.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(text)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, other)
	if v := floatsOf(w.Body.Bytes()[max(0, w.Body.Len()-48):]); w.Code != 200 || v[0] != 2 {
		t.Errorf("got %d and %v, want an answer", w.Code, v)
	}
	for _, c := range open {
		// Those whose head was there are told; all are hung up on.
		answer, err := untilItEnds(c)
		if err != nil {
			t.Errorf("got %v, want the end of the connection", err)
		}
		if len(answer) > 0 && !strings.Contains(string(answer), " 400 ") && !strings.Contains(string(answer), " 408 ") {
			t.Errorf("got %.200s, want a refusal", answer)
		}
		c.Close()
	}
	c := dial(t, h.URL)
	defer c.Close()
	if _, err := io.WriteString(c, "POST /v2/repository/index HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if answer, err := untilItEnds(c); err != nil {
		t.Errorf("a request without tensors: got %s and %v, want the end of the connection", answer, err)
	}
	until(t, "nothing is promised for them", func() bool {
		return s.Memory().Promised <= before+1<<16 && s.ingress.figures().used == 0
	})
	m, err := s.use("double", "")
	if err != nil {
		t.Fatal(err)
	}
	m.done()
	until(t, "none of them waits", func() bool { return m.queue.length() == 0 })
}

// TestClientsThatDoNotRead asks for answers that are larger than the system
// keeps for a connection, and does not take them.
func TestClientsThatDoNotRead(t *testing.T) {
	const n = 4 << 20
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 1)
	g.Ints("shape", n)
	g.Node("Expand", []string{"x", "shape"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, n)
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": g.File()})}, Stall: 50 * time.Millisecond, Memory: 1 << 30})
	for _, binary := range []bool{false, true} {
		text := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}],"parameters":{"binary_data_output":%t}}`, binary)
		c := dial(t, h.URL)
		if _, err := io.WriteString(c, head(text, len(text))); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(c).ReadByte(); err != nil { // the answer has begun
			t.Fatal(err)
		}
		until(t, "the answer is given up", func() bool { return s.Memory().Promised < 1<<20 || isFree(s) })
		c.Close()
	}
	wantCode(t, get(t, h.URL+"/v2/models/double/ready"), 200, "true")
}

// isFree reports whether no request holds memory.
func isFree(s *Server) bool {
	m, err := s.use("double", "")
	if err != nil {
		return false
	}
	defer m.done()
	return m.isIdle()
}

// TestGarbage sends bytes that are no requests, and requests with bytes that
// were changed: whatever is answered, the server goes on.
func TestGarbage(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	r := rand.New(rand.NewPCG(7, 8))
	text, data := row(1, 2)
	for range 300 {
		body := []byte(text + string(data))
		for range 1 + r.IntN(4) {
			body[r.IntN(len(text))] = byte(r.Uint32())
		}
		q, _ := http.NewRequest("POST", h.URL+"/v2/models/double/infer", strings.NewReader(string(body)))
		q.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(text)+r.IntN(3)-1))
		if got := do(t, q); got.code >= 500 {
			t.Errorf("%q: got %d and %s, want a refusal as the client's fault", body, got.code, got.text)
		}
	}
	for range 20 {
		c := dial(t, h.URL)
		junk := make([]byte, 2000)
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		_, _ = c.Write(junk)
		c.Close()
	}
	wantDoubled(t, post(t, h.URL+"/v2/models/double/infer", text, data), 1, 2)
	until(t, "nothing is held", func() bool { return isFree(s) && s.ingress.figures().used == 0 })
}

// TestReloadInAStorm loads a model again and again while clients ask: every
// request is answered, by one of the two versions of the file.
func TestReloadInAStorm(t *testing.T) {
	var other onnxtest.Graph
	other.Input("x", onnxtest.F32, "batch", 4)
	other.Node("Sub", []string{"x", "x"}, []string{"y"})
	other.OutputOf("y", onnxtest.F32, "batch", 4)
	dir := write(t, map[string][]byte{"double/1/model.onnx": doubling(), "double/2/model.onnx": other.File()})
	s, h := start(t, Config{Paths: []string{dir}, MaxBatch: 4, Memory: 1 << 30})
	var stop atomic.Bool
	var answered [2]atomic.Int64
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				n := 1 + (client+i)%3
				text, data := row(float32(i+1), n)
				var got reply
				if client%2 == 0 {
					got = post(t, h.URL+"/v2/models/double/infer", text, data)
				} else {
					got = overRPC(send(t, h.URL, inference+"ModelInfer", bytes.NewReader(frame(rawRow(t, "double", float32(i+1), n)))))
				}
				v := floatsOf(got.data)
				switch {
				case got.code != 200 || len(v) != 4*n:
					t.Errorf("got %d and %s in the middle of a reload", got.code, got.text)
					return
				case v[0] == 0:
					answered[1].Add(1)
				default:
					answered[0].Add(1)
					wantDoubled(t, got, float32(i+1), n)
				}
			}
		})
	}
	for i := range 40 {
		version := 1 + i%2
		config, err := parseModelConfig(fmt.Appendf(nil, `{"max_batch_size":4,"dynamic_batching":{},"version_policy":{"specific":{"versions":[%d]}}}`, version))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), "double", config); err != nil {
			t.Error(err)
		}
		seen := answered[version-1].Load()
		until(t, "the new version answers", func() bool { return answered[version-1].Load() > seen || t.Failed() })
	}
	stop.Store(true)
	wg.Wait()
	if answered[0].Load() == 0 || answered[1].Load() == 0 {
		t.Errorf("got %d answers of one version and %d of the other, want some of each", answered[0].Load(), answered[1].Load())
	}
}

// overRPC is the outcome of a call as a reply of HTTP.
func overRPC(c called) reply {
	code, known := map[grpc.Code]int{grpc.OK: 200, grpc.Unavailable: 503, grpc.ResourceExhausted: 413}[grpc.Code(c.code)]
	if !known {
		code = c.code
	}
	r := reply{code: code, text: c.text}
	if len(c.messages) == 1 {
		if raw, _ := c.messages[0]["raw_output_contents"].([]any); len(raw) == 1 {
			r.data, _ = raw[0].([]byte)
		}
	}
	return r
}

// TestOverload asks for more than the budget at a time, in sizes that differ.
// Requests are answered rightly or refused, and what is in use is never more
// than what was promised.
func TestOverload(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", 4)
	g.Node("Exp", []string{"x"}, []string{"a"})
	g.Ints("axes", 1)
	g.Node("ReduceSum", []string{"a", "axes"}, []string{"s"})
	g.Node("Div", []string{"a", "s"}, []string{"d"})
	g.Node("Sub", []string{"d", "d"}, []string{"z"})
	g.Node("Add", []string{"x", "x"}, []string{"xx"})
	g.Node("Add", []string{"xx", "z"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, "batch", 4)
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": g.File(), "other.onnx": g.File()})}, Memory: 3 << 20, MaxBatch: 1 << 16, Patience: 200 * time.Millisecond})
	idle := memory.Stats().Total.Current - memory.Stats().Files
	var wg, watch sync.WaitGroup
	var stop atomic.Bool
	watch.Go(func() {
		for !stop.Load() {
			f := memory.Stats()
			if used, most := f.Total.Current-f.Files, s.Memory().Most; used > most {
				t.Errorf("got %d bytes in use, and at most %d promised until then", used, most)
				return
			}
		}
	})
	var ok, refused atomic.Int64
	for client := range 10 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(client)))
			for range 40 {
				n := 1 << r.IntN(16)
				text, data := row(float32(1+r.IntN(9)), n)
				first := floatsOf(data[:4])[0]
				model := []string{"double", "other"}[r.IntN(2)]
				var got reply
				if r.IntN(2) == 0 {
					got = post(t, h.URL+"/v2/models/"+model+"/infer", text, data)
				} else {
					got = overRPC(send(t, h.URL, inference+"ModelInfer", bytes.NewReader(frame(rawRow(t, model, first, n)))))
				}
				switch got.code {
				case http.StatusOK:
					ok.Add(1)
					if v := floatsOf(got.data); len(v) != 4*n || v[0] != 2*first {
						t.Errorf("got %d numbers that begin with %v, want %d and %v", len(v), v[0], 4*n, 2*first)
					}
				case http.StatusServiceUnavailable, http.StatusRequestEntityTooLarge:
					refused.Add(1)
				default:
					t.Errorf("got %d and %s", got.code, got.text)
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	watch.Wait()
	f := s.Memory()
	if f.Most > f.Budget || ok.Load() == 0 {
		t.Errorf("got %d answers, %d refusals, at most %d of %d bytes promised", ok.Load(), refused.Load(), f.Most, f.Budget)
	}
	if used := memory.Stats().Total.Current - memory.Stats().Files; used > idle+f.Promised {
		t.Errorf("got %d bytes in use at the end, %d when idle", used, idle)
	}
}

// TestShutdown ends the server while requests are under way: those are
// answered, later ones are refused or find nobody.
func TestShutdown(t *testing.T) {
	s, _ := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	wantCode(t, get(t, url+"/v2/health/ready"), 200, `{"live":true,"ready":true}`)
	free := occupy(t, s, "double")
	text, data := row(3, 1)
	var wg sync.WaitGroup
	wg.Go(func() { wantDoubled(t, post(t, url+"/v2/models/double/infer", text, data), 3, 1) })
	until(t, "the request is under way", func() bool {
		m, err := s.use("double", "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.done()
		return m.queue.length() == 0 && !m.isIdle()
	})
	cancel()
	until(t, "the server is not ready", func() bool { return !s.isReady() })
	select {
	case err := <-ended:
		t.Fatalf("got an end (%v) before the request was answered", err)
	case <-time.After(20 * time.Millisecond):
	}
	free()
	wg.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url + "/v2"); err == nil {
		t.Error("got an answer after the end")
	}
}

// TestShutdownWithARunThatLasts ends a server whose runs do not end in time:
// they are stopped.
func TestShutdownWithARunThatLasts(t *testing.T) {
	s, _ := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30, Exit: 30 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	free := occupy(t, s, "double")
	text, data := row(3, 1)
	answer := make(chan reply, 1)
	go func() { answer <- post(t, "http://"+l.Addr().String()+"/v2/models/double/infer", text, data) }()
	until(t, "the request is under way", func() bool {
		m, err := s.use("double", "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.done()
		return m.queue.length() == 0 && !m.isIdle()
	})
	cancel()
	wantCode(t, <-answer, 503, ErrClosed.Error())
	if err := <-ended; err != nil {
		t.Error(err)
	}
	free()
	if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
