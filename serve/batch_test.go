package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/tensor"
)

// occupy takes the run of a model until the returned function is called.
func occupy(t *testing.T, s *Server, name string) (free func()) {
	t.Helper()
	m, err := s.use(name, "")
	if err != nil {
		t.Fatal(err)
	}
	in := tenure.Inputs{}
	for i, info := range m.inputs {
		shape := dims(info)
		for axis := range shape {
			shape[axis] = max(1, shape[axis])
		}
		x, err := newTensor(m.inputs[i].DType, shape)
		if err != nil {
			t.Fatal(err)
		}
		b, err := x.Lock()
		if err != nil {
			t.Fatal(err)
		}
		clear(b.Data)
		b.Release()
		in[info.Name] = x
	}
	running, release, ended := make(chan bool), make(chan bool), make(chan bool)
	var once sync.Once
	go func() {
		defer close(ended)
		out, err := m.session.Run(context.Background(), in, tenure.Watch(func(*ir.Call, time.Duration) {
			once.Do(func() { close(running) })
			<-release
		}))
		if err != nil {
			t.Error(err)
		}
		_ = out.Release()
		for _, x := range in {
			_ = x.(*tensor.Tensor).Release()
		}
	}()
	<-running
	return func() {
		close(release)
		<-ended
		m.done()
	}
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 20_000 {
		if holds() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("it did not come about that %s", what)
}

// counts returns requests answered and runs made.
func counts(t *testing.T, h *live, name string) (answered, runs int64) {
	t.Helper()
	var v struct {
		Stats []struct {
			Count     int64 `json:"inference_count"`
			Execution int64 `json:"execution_count"`
		} `json:"model_stats"`
	}
	if err := json.Unmarshal([]byte(get(t, h.URL+"/v2/models/"+name+"/stats").text), &v); err != nil || len(v.Stats) != 1 {
		t.Fatalf("got %+v, %v", v, err)
	}
	return v.Stats[0].Count, v.Stats[0].Execution
}

// together sends requests while the model is busy, so that they wait, and
// returns their answers.
func together(t *testing.T, s *Server, name string, requests ...func() reply) []reply {
	t.Helper()
	free := occupy(t, s, name)
	m, err := s.use(name, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.done()
	answers := make([]reply, len(requests))
	var wg sync.WaitGroup
	waiting := func(n int) func() bool {
		return func() bool {
			m.queue.mu.Lock()
			defer m.queue.mu.Unlock()
			return len(m.queue.waiting) == n
		}
	}
	for i, f := range requests {
		wg.Go(func() { answers[i] = f() })
		if i == 0 { // it is taken, and waits for the run
			until(t, "the first request is taken", func() bool {
				m.queue.mu.Lock()
				defer m.queue.mu.Unlock()
				return m.queue.pending == 0 && !m.isIdle()
			})
			continue
		}
		until(t, "the request waits", waiting(i))
	}
	free()
	wg.Wait()
	return answers
}

// isIdle reports whether the model has no claim of a request.
func (m *model) isIdle() bool {
	m.server.memory.mu.Lock()
	defer m.server.memory.mu.Unlock()
	return len(m.account.claims) == 0
}

// TestBatch runs requests of 1, 2 and 3 rows as one, and wants the bytes that
// each gets alone.
func TestBatch(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()}), "../examples/digits/digits.onnx"}, MaxBatch: 6, Memory: 1 << 30})
	url := h.URL + "/v2/models/double/infer"
	var requests []func() reply
	for i, n := range []int{1, 1, 2, 3, 4, 2} { // the first one runs alone, then 1+2+3, then 4+2
		requests = append(requests, func() reply {
			text, data := row(float32(100*i), n)
			return post(t, url, text, data)
		})
	}
	_, before := counts(t, h, "double")
	for i, got := range together(t, s, "double", requests...) {
		wantDoubled(t, got, float32(100*i), []int{1, 1, 2, 3, 4, 2}[i])
	}
	if rows, runs := counts(t, h, "double"); rows != 13 || runs-before != 3 {
		t.Errorf("got %d rows in %d runs, want 13 in 3", rows, runs-before)
	}
	wantCode(t, get(t, h.URL+"/v2/models/double/stats"), 200, `{"batch_size":6,"compute_input":{"count":2,`)

	// A network. Products of several rows may be rounded otherwise than those
	// of one.
	digit := func(i int) func() reply {
		v := make([]float32, 64)
		for k := range v {
			v[k] = float32((k*7+i*13)%17) / 17
		}
		return func() reply {
			return post(t, h.URL+"/v2/models/digits/infer", `{"inputs":[{"name":"image","datatype":"FP32","shape":[1,1,8,8],"parameters":{"binary_data_size":256}}],"parameters":{"binary_data_output":true}}`, floatBytes(v))
		}
	}
	alone := digit(5)()
	answers := together(t, s, "digits", digit(1), digit(2), digit(3), digit(5))
	got, want := floatsOf(answers[3].data), floatsOf(alone.data)
	if answers[3].code != 200 || !slices.EqualFunc(got, want, func(x, y float32) bool { return math.Abs(float64(x-y)) <= 1e-5 }) {
		t.Errorf("in a batch: got %d and %v, alone %v", answers[3].code, got, want)
	}
}

// TestBatchWithAFailure lets one request of a batch fail: the others are
// answered.
func TestBatchWithAFailure(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"lookup.onnx": lookup()})}, MaxBatch: 8, Memory: 1 << 30})
	ask := func(i int) func() reply {
		return func() reply {
			return post(t, h.URL+"/v2/models/lookup/infer", fmt.Sprintf(`{"inputs":[{"name":"i","datatype":"INT64","shape":[1],"data":[%d]}]}`, i), nil)
		}
	}
	answers := together(t, s, "lookup", ask(0), ask(3), ask(77), ask(9))
	for i, want := range []string{`"data":[0,1]`, `"data":[6,7]`, "", `"data":[18,19]`} {
		if want == "" {
			wantCode(t, answers[i], 500, "77")
		} else {
			wantCode(t, answers[i], 200, want)
		}
	}
}

// TestNoBatch wants requests of a model run alone whose rows do not stay apart:
// its output has one row for any number of them.
func TestNoBatch(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", 4)
	g.Ints("axes", 0)
	g.Node("ReduceMax", []string{"x", "axes"}, []string{"y"}, onnxtest.Int("keepdims", 1))
	g.OutputOf("y", onnxtest.F32, "rows", 4)
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"m.onnx": g.File()})}, MaxBatch: 8, Memory: 1 << 30})
	ask := func(v float32) func() reply {
		return func() reply {
			text, data := row(v, 1)
			return post(t, h.URL+"/v2/models/m/infer", text, data)
		}
	}
	for i, got := range together(t, s, "m", ask(1), ask(2), ask(3)) {
		if v := floatsOf(got.data); got.code != 200 || v[0] != float32(1+i) {
			t.Errorf("request %d: got %d, %s and %v", i, got.code, got.text, v)
		}
	}
	wantCode(t, get(t, h.URL+"/v2/models/m/config"), 200, `"max_batch_size":0`)
}

// TestBatchInSmallMemory wants requests that wait together run in parts where
// the memory of a whole batch is not free.
func TestBatchInSmallMemory(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", 1<<16)
	g.Node("Add", []string{"x", "x"}, []string{"y"})
	g.OutputOf("y", onnxtest.F32, "batch", 1<<16)
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"m.onnx": g.File()})}, MaxBatch: 8, Memory: 3 << 20})
	ask := func(v float32) func() reply {
		data := make([]float32, 1<<16)
		for i := range data {
			data[i] = v
		}
		return func() reply {
			return post(t, h.URL+"/v2/models/m/infer", fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,65536],"parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}`, 4<<16), floatBytes(data))
		}
	}
	_, before := counts(t, h, "m")
	for i, got := range together(t, s, "m", ask(1), ask(2), ask(3), ask(4), ask(5)) {
		if v := floatsOf(got.data); got.code != 200 || v[0] != float32(2+2*i) || v[1<<16-1] != v[0] {
			t.Errorf("request %d: got %d and %.100s", i, got.code, got.text)
		}
	}
	if _, runs := counts(t, h, "m"); runs-before < 3 {
		t.Errorf("got %d runs, want more than one for four requests of 512 KiB in 3 MiB", runs-before)
	}
	if got := s.Memory(); got.Most > 3<<20 {
		t.Errorf("got %d bytes promised, want at most 3 MiB", got.Most)
	}
}

// TestTimeouts ends requests that wait too long, and those whose client goes.
func TestTimeouts(t *testing.T) {
	config := `{"max_batch_size":4,"dynamic_batching":{"default_queue_policy":{"default_timeout_microseconds":600000000,"allow_timeout_override":true,"max_queue_size":2}}}`
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"m/1/model.onnx": doubling(), "m/config.json": []byte(config)})}, Memory: 1 << 30})
	url := h.URL + "/v2/models/m/infer"
	free := occupy(t, s, "m")
	m, err := s.use("m", "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.done()
	text, data := row(1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { // it is taken at once, and waits for the run
		wantDoubled(t, post(t, url, text, data), 1, 1)
	})
	until(t, "the first one is taken", func() bool { return m.queue.length() == 0 && !m.isIdle() })
	wg.Go(func() {
		got := post(t, url, strings.Replace(text, `"parameters":{"binary_data_output"`, `"parameters":{"timeout":1000,"binary_data_output"`, 1), data)
		wantCode(t, got, 503, "request timeout expired after 1ms")
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("got the header %v, want Retry-After", got.header)
		}
	})
	until(t, "the second one has timed out", func() bool {
		m.stats.mu.Lock()
		defer m.stats.mu.Unlock()
		return m.stats.failures["REJECTED"] != nil
	})
	wg.Go(func() {
		r, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(text+string(data)))
		r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
		if _, err := http.DefaultClient.Do(r); err == nil {
			t.Error("got an answer to a request that was given up")
		}
	})
	until(t, "the third one waits", func() bool { return m.queue.length() == 1 })
	cancel()
	until(t, "the third one has left", func() bool { return m.queue.length() == 0 })
	for range 2 {
		wg.Go(func() { wantDoubled(t, post(t, url, text, data), 1, 1) })
	}
	until(t, "the queue is full", func() bool { return m.queue.length() == 2 })
	wantCode(t, post(t, url, text, data), 503, "exceeds maximum queue size")
	free()
	wg.Wait()
	until(t, "one was counted as cancelled", func() bool {
		return strings.Contains(get(t, h.URL+"/metrics").text, `nv_inference_request_failure{model="m",version="1",reason="CANCELED"} 1`)
	})
	for _, want := range []string{`nv_inference_request_success{model="m",version="1"} 3`, `reason="REJECTED"} 2`, `tenure_admission_rejected_total{reason="timeout"} 1`, `tenure_admission_rejected_total{reason="busy"} 1`} {
		wantCode(t, get(t, h.URL+"/metrics"), 200, want)
	}
}
