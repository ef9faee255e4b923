package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/serve/internal/grpc"
)

// table returns rows of 16 numbers, the first of which is first, from weights
// of 64 KiB.
func table(first float32) []byte {
	var g onnxtest.Graph
	v := make([]float32, 1024*16)
	for i := range v {
		v[i] = first + float32(i)
	}
	g.Weight("table", onnxtest.F32, floatBytes(v), 1024, 16)
	g.Input("i", onnxtest.I64, "batch")
	g.Node("Gather", []string{"table", "i"}, []string{"y"}, onnxtest.Int("axis", 0))
	g.OutputOf("y", onnxtest.F32, "batch", 16)
	return g.File()
}

// askTable asks a model of table for its first row, and returns the first
// number of the answer.
func askTable(t testing.TB, h *live, model string) (first float32, got reply) {
	t.Helper()
	got = post(t, h.URL+"/v2/models/"+model+"/infer", `{"inputs":[{"name":"i","datatype":"INT64","shape":[1],"data":[0]}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`, nil)
	if v := floatsOf(got.data); got.code == http.StatusOK && len(v) == 16 {
		return v[0], got
	}
	return -1, got
}

// askTableByRPC wants the same answer by gRPC.
func askTableByRPC(t testing.TB, h *live, model string, want float32) {
	t.Helper()
	got := invoke(t, h.URL, inference+"ModelInfer", fmt.Sprintf(`{"model_name":%q,"inputs":[{"name":"i","datatype":"INT64","shape":[1],"contents":{"int64_contents":[0]}}]}`, model))
	wantStatus(t, got, grpc.OK, "")
	if len(got.messages) != 1 {
		t.Errorf("%s: got %d messages, want one", model, len(got.messages))
		return
	}
	raw, _ := got.messages[0]["raw_output_contents"].([]any)
	if len(raw) != 1 {
		t.Errorf("%s: got %v, want one output", model, got.messages[0])
		return
	}
	data, _ := raw[0].([]byte)
	if v := floatsOf(data); len(v) != 16 || v[0] != want {
		t.Errorf("%s: got %v, want %v first", model, v, want)
	}
}

func wantFirst(t testing.TB, h *live, model string, want float32) {
	t.Helper()
	if v, got := askTable(t, h, model); v != want {
		t.Errorf("%s: got %v, %d and %s, want %v", model, v, got.code, got.text, want)
	}
}

// loadedModels lists the models that are in memory.
func loadedModels(s *Server) string {
	list, _ := s.Models()
	var names []string
	for _, m := range list {
		if m.State == "READY" && m.Reason == "" {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, " ")
}

// roomForTwo is a budget of which the models' part has room for two models of
// table, which take twice their weights, and not for three.
const roomForTwo = 345 << 10

// TestEvict serves three models in the memory of two: the one that was used
// longest ago is evicted, answers what is asked about it, and comes back.
func TestEvict(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1/model.onnx": table(100), "b/1/model.onnx": table(200), "c/1/model.onnx": table(300)})
	s, h := start(t, Config{Paths: []string{dir}, Evict: true, Explicit: true, Memory: roomForTwo, Threads: 1})
	want := func(names string) {
		t.Helper()
		if got := loadedModels(s); got != names {
			t.Errorf("got %q in memory, want %q", got, names)
		}
	}
	want("b c") // the last ones
	wantCode(t, get(t, h.URL+"/v2/health/ready"), 200, "true")
	wantFirst(t, h, "b", 200)
	for _, path := range []string{"", "/ready", "/config", "/stats"} {
		wantCode(t, get(t, h.URL+"/v2/models/a"+path), 200, `"name":"a"`)
	}
	wantCode(t, post(t, h.URL+"/v2/repository/index", `{"ready":true}`, nil), 200, `{"name":"a","version":"1","state":"READY","reason":"evicted"}`)
	wantCode(t, get(t, h.URL+"/metrics"), 200, `tenure_model_loaded{model="a",version="1"} 0`)
	wantCode(t, get(t, h.URL+"/v2/models/a"), 200, `"versions":["1"]`)
	wantCode(t, get(t, h.URL+"/v2/models/a/versions/2"), 404, "version 2 is not found")
	wantCode(t, get(t, h.URL+"/v2/models/c/ready"), 200, "true") // that is no use
	want("b c")
	wantFirst(t, h, "a", 100)
	want("a b")
	wantFirst(t, h, "a", 100)
	wantFirst(t, h, "c", 300)
	want("a c")
	wantCode(t, get(t, h.URL+"/v2/models/a/stats"), 200, `"inference_count":2,`) // with that of its first load
	wantCode(t, get(t, h.URL+"/v2/models/a/stats"), 200, `"eviction_stats":{"evicted":false,"evictions":1,"reloads":1}`)
	wantCode(t, get(t, h.URL+"/metrics"), 200, `tenure_model_evictions_total{model="b",version="1"} 1`)
	if f := s.memory.figures(); f.most > f.budget {
		t.Errorf("got %d bytes promised, want at most %d", f.most, f.budget)
	}

	// By gRPC, too.
	wantStatus(t, invoke(t, h.URL, inference+"ModelStatistics", `{"name":"b"}`), grpc.OK, "")
	wantStatus(t, invoke(t, h.URL, inference+"ModelMetadata", `{"name":"b"}`), grpc.OK, "")
	want("a c")
	askTableByRPC(t, h, "b", 200)
	want("b c")
	askTableByRPC(t, h, "a", 100)
	want("a b")

	// A model that is unloaded does not come back by itself.
	wantCode(t, post(t, h.URL+"/v2/repository/models/b/unload", "", nil), 200, "")
	_, got := askTable(t, h, "b")
	wantCode(t, got, 404, "unknown model")
	wantCode(t, post(t, h.URL+"/v2/repository/models/b/load", "", nil), 200, "")
	want("a b")
	wantFirst(t, h, "a", 100)
}

// TestPinned wants a model left in memory whose configuration says so, and the
// others refused while it is.
func TestPinned(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1/model.onnx": table(100), "a/config.json": []byte(`{"parameters":{"evict":{"string_value":"false"}}}`),
		"b/1/model.onnx": table(200), "c/1/model.onnx": table(300)})
	s, h := start(t, Config{Paths: []string{dir}, Evict: true, Memory: roomForTwo, Threads: 1})
	for range 3 {
		wantFirst(t, h, "b", 200)
		wantFirst(t, h, "c", 300)
		if got := loadedModels(s); got != "a c" {
			t.Errorf("got %q in memory, want a, and the last one", got)
		}
	}
	wantFirst(t, h, "a", 100)
	_, err := New(t.Context(), Config{Paths: []string{write(t, map[string][]byte{"a/1/model.onnx": table(100), "a/config.json": []byte(`{"parameters":{"evict":"never"}}`)})}})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "parameters: evict") {
		t.Errorf("got %v, want an error about the parameter", err)
	}
}

// TestEvictedAsItWasLoaded wants an evicted model back with the versions and
// the configuration that it was loaded with, also when there are newer files.
func TestEvictedAsItWasLoaded(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1/model.onnx": table(100), "b/1/model.onnx": table(200), "c/1/model.onnx": table(300)})
	s, h := start(t, Config{Paths: []string{dir}, Evict: true, Explicit: true, Empty: true, Memory: roomForTwo, Threads: 1})
	config, err := parseModelConfig([]byte(`{"max_batch_size":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Load(t.Context(), "a", config), s.Load(t.Context(), "b", nil), s.Load(t.Context(), "c", nil)); err != nil {
		t.Fatal(err)
	}
	if got := loadedModels(s); got != "b c" {
		t.Fatalf("got %q in memory, want a evicted", got)
	}
	second := filepath.Join(dir, "a/2")
	if err := errors.Join(os.Mkdir(second, 0o700), os.WriteFile(filepath.Join(second, "model.onnx"), table(111), 0o600)); err != nil {
		t.Fatal(err)
	}
	wantFirst(t, h, "a", 100)
	wantCode(t, get(t, h.URL+"/v2/models/a/config"), 200, `"max_batch_size":7`)
	wantCode(t, get(t, h.URL+"/v2/models/a"), 200, `"versions":["1"]`)
	if err := s.Load(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	wantFirst(t, h, "a", 111)
	wantFirst(t, h, "b", 200)
	wantFirst(t, h, "c", 300)
	if got := loadedModels(s); got != "b c" {
		t.Fatalf("got %q in memory, want a evicted", got)
	}
	wantFirst(t, h, "a", 111)
}

// TestEvictedFileIsGone wants an error for a model that cannot come back, and a
// server that is not ready until it can.
func TestEvictedFileIsGone(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1/model.onnx": table(100), "b/1/model.onnx": table(200), "c/1/model.onnx": table(300)})
	s, h := start(t, Config{Paths: []string{dir}, Evict: true, Memory: roomForTwo, Threads: 1})
	file := filepath.Join(dir, "a/1/model.onnx")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantCode(t, get(t, h.URL+"/v2/health/ready"), 200, "true") // nobody has looked
	_, got := askTable(t, h, "a")
	wantCode(t, got, 500, "load failed for model 'a'")
	wantCode(t, get(t, h.URL+"/v2/health/ready"), 503, "false")
	wantCode(t, post(t, h.URL+"/v2/repository/index", "", nil), 200, `{"name":"a","version":"1","state":"UNAVAILABLE","reason":"`)
	wantFirst(t, h, "b", 200)
	if err := os.WriteFile(file, table(100), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFirst(t, h, "a", 100)
	wantCode(t, get(t, h.URL+"/v2/health/ready"), 200, "true")
	if got := loadedModels(s); got != "a b" {
		t.Errorf("got %q in memory, want a, and b, which was used last", got)
	}
}

// TestInUseIsNotEvicted lets requests hold the models: one that needs the
// memory of a held one waits, or is answered with 503 when its time is over.
func TestInUseIsNotEvicted(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1/model.onnx": table(100), "b/1/model.onnx": table(200), "c/1/model.onnx": table(300)})
	s, h := start(t, Config{Paths: []string{dir}, Evict: true, Memory: roomForTwo, Threads: 1})
	b, err := s.useToRun(t.Context(), "b", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.useToRun(t.Context(), "c", "")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("no time: %w", ErrBusy))
	if _, err := s.useToRun(short, "a", ""); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want the end of the caller's patience", err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { wantFirst(t, h, "a", 100) })
	}
	wantFirst(t, h, "b", 200) // others are not held up
	wantFirst(t, h, "c", 300)
	if got := loadedModels(s); got != "b c" {
		t.Errorf("got %q in memory, want those in use", got)
	}
	c.done()
	wg.Wait()
	if got := loadedModels(s); got != "a b" {
		t.Errorf("got %q in memory, want a in place of c", got)
	}
	b.done()
}

// TestEvictedWriter evicts a model that generates text between its texts, and
// wants it left alone in the middle of one.
func TestEvictedWriter(t *testing.T) {
	files := characters(t)
	s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Evict: true, Memory: 1 << 30})
	want := textOf(t, files, newSingle(t, files["model.onnx"]).write(t, idsOf(t, files, "A tensor"), 300, 512))
	for range 2 {
		before := generatorOf(t, s, "m").now().completion
		var text string
		var err error
		var wg sync.WaitGroup
		wg.Go(func() {
			text, _, err = streamed(t, t.Context(), h.URL, map[string]any{"model": "m", "prompt": "A tensor", "max_tokens": 300, "temperature": 0}, 0)
		})
		for generatorOf(t, s, "m").now().completion == before {
			s.evictOne()
			runtime.Gosched()
		}
		wg.Wait()
		if err != nil || text != want {
			t.Errorf("got %q, %v, want %q", text, err, want)
		}
		for !s.evictOne() { // until the request has ended
			runtime.Gosched()
		}
		if f := s.memory.figures(); f.used != 0 {
			t.Errorf("got %d bytes promised, want none for an evicted model", f.used)
		}
		wantCode(t, get(t, h.URL+"/v1/models"), 200, `"id":"m"`)
		wantCode(t, get(t, h.URL+"/v1/models/m"), 200, `"id":"m"`)
		if got := loadedModels(s); got != "" {
			t.Errorf("got %q in memory, want nothing", got)
		}
	}
}

// TestEvictionStorm asks for more models than there is room for, by HTTP and
// gRPC, while some are loaded anew. Every answer is that of its
// model, and what was promised stays within the budget.
func TestEvictionStorm(t *testing.T) {
	files := map[string][]byte{}
	name := func(i int) string { return fmt.Sprintf("m%d", i) }
	for i := range 6 {
		files[name(i)+"/1/model.onnx"] = table(float32(100 * i))
	}
	s, h := start(t, Config{Paths: []string{write(t, files)}, Evict: true, Explicit: true, Memory: 500 << 10, MaxBatch: 4, Threads: 1})
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(8, uint64(client)))
			for range 60 {
				i := r.IntN(6)
				switch {
				case client == 0 && r.IntN(4) == 0:
					if err := s.Load(t.Context(), name(i), nil); err != nil && !errors.Is(err, ErrBusy) {
						t.Error(err)
					}
				case client == 1 && r.IntN(4) == 0:
					wantCode(t, get(t, h.URL+"/metrics"), 200, "tenure_model_loaded")
					wantCode(t, get(t, h.URL+"/v2/models/"+name(i)+"/stats"), 200, name(i))
				case client == 2 && r.IntN(4) == 0: // it gives up
					ctx, cancel := context.WithCancel(t.Context())
					go cancel()
					if m, err := s.useToRun(ctx, name(i), ""); err == nil {
						m.done()
					}
					cancel()
				case r.IntN(3) == 0:
					askTableByRPC(t, h, name(i), float32(100*i))
				default:
					wantFirst(t, h, name(i), float32(100*i))
				}
			}
		})
	}
	wg.Wait()
	if f := s.memory.figures(); f.most > f.budget || f.waiting != 0 {
		t.Errorf("got %+v, want at most the budget promised, and nobody waiting", f)
	}
	evictions := int64(0)
	list, err := s.loaded("", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		evictions += m.stats.evictions.Load()
		m.done()
	}
	if evictions == 0 {
		t.Error("got no eviction, want some")
	}
}
