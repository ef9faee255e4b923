package serve

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/memory"
)

// rejections count requests that were refused for want of room.
type rejections struct {
	mu sync.Mutex
	by map[string]int64
}

// count counts an error, if it is one of these.
func (r *rejections) count(err error) {
	var never *neverFits
	why := ""
	switch {
	case errors.As(err, &never):
		why = "never_fits"
	case errors.Is(err, ErrTimeout):
		why = "timeout"
	case errors.Is(err, ErrClosed):
		why = "draining"
	case errors.Is(err, ErrBusy):
		why = "busy"
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]int64{}
	}
	r.by[why]++
}

// exposition collects metrics in the text format of Prometheus.
type exposition struct{ bytes.Buffer }

func (e *exposition) family(name, kind, help string) {
	fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (e *exposition) sample(name, labels string, value int64) {
	fmt.Fprintf(e, "%s%s %d\n", name, labels, value)
}

// quote escapes a label's value.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(s) + `"`
}

// metrics answers with the counts of all models and the sums of memory.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	list, err := s.loaded("", "")
	if err != nil {
		return err
	}
	defer func() {
		for _, m := range list {
			m.done()
		}
	}()
	var e exposition
	for _, f := range []struct {
		name, help string
		value      func(m *model) int64
	}{
		{"nv_inference_request_success", "Number of requests that were answered", func(m *model) int64 { return m.stats.success.count }},
		{"nv_inference_count", "Number of rows of the first dimension that were inferred", func(m *model) int64 { return m.stats.inferences }},
		{"nv_inference_exec_count", "Number of runs of the model", func(m *model) int64 { return m.stats.executions }},
		{"nv_inference_request_duration_us", "Duration of requests in microseconds, summed", func(m *model) int64 { return m.stats.success.took.Microseconds() }},
		{"nv_inference_queue_duration_us", "Time that requests waited in microseconds, summed", func(m *model) int64 { return m.stats.queue.took.Microseconds() }},
		{"nv_inference_compute_input_duration_us", "Time that inputs took in microseconds, summed", func(m *model) int64 { return m.stats.input.took.Microseconds() }},
		{"nv_inference_compute_infer_duration_us", "Time that runs took in microseconds, summed over their requests", func(m *model) int64 { return m.stats.infer.took.Microseconds() }},
		{"nv_inference_compute_output_duration_us", "Time that outputs took in microseconds, summed", func(m *model) int64 { return m.stats.output.took.Microseconds() }},
	} {
		e.family(f.name, "counter", f.help)
		for _, m := range list {
			m.stats.mu.Lock()
			v := f.value(m)
			m.stats.mu.Unlock()
			e.sample(f.name, m.labels(""), v)
		}
	}
	e.family("nv_inference_request_failure", "counter", "Number of requests that failed")
	for _, m := range list {
		m.stats.mu.Lock()
		failures := map[string]int64{"REJECTED": 0, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}
		for why, t := range m.stats.failures {
			failures[why] = t.count
		}
		m.stats.mu.Unlock()
		for _, why := range slices.Sorted(maps.Keys(failures)) {
			e.sample("nv_inference_request_failure", m.labels(`,reason="`+why+`"`), failures[why])
		}
	}
	e.family("nv_inference_pending_request_count", "gauge", "Number of requests that wait for a run")
	for _, m := range list {
		e.sample("nv_inference_pending_request_count", m.labels(""), int64(m.queue.length()))
	}
	generationMetrics(&e, list)
	if s.config.Evict {
		evictionMetrics(&e, list)
	}
	s.memoryMetrics(&e, list)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(e.Bytes())
	return nil
}

func (m *model) labels(more string) string {
	return "{model=" + quote(m.name) + `,version="` + strconv.Itoa(m.version) + `"` + more + "}"
}

// memoryMetrics appends what was promised and what is in use.
func (s *Server) memoryMetrics(e *exposition, list []*model) {
	e.family("tenure_memory_weights_bytes", "gauge", "Bytes promised to the weights of a model")
	for _, m := range list {
		weights, _ := s.memory.of(m.account)
		e.sample("tenure_memory_weights_bytes", m.labels(""), weights)
	}
	e.family("tenure_memory_arena_bytes", "gauge", "Bytes promised to the arenas of a model")
	for _, m := range list {
		_, standing := s.memory.of(m.account)
		e.sample("tenure_memory_arena_bytes", m.labels(""), standing)
	}
	f, used := s.Memory(), memory.Stats()
	for _, g := range []struct {
		name, help string
		value      int64
	}{
		{"tenure_memory_budget_bytes", "Bytes that models and requests may take", f.Budget},
		{"tenure_memory_reserved_bytes", "Bytes that are promised to models and requests", f.Promised},
		{"tenure_promised_peak_bytes", "The most bytes that were promised at a time", f.Most},
		{"tenure_memory_waiting_requests", "Requests that wait for memory", int64(f.Waiting)},
		{"tenure_memory_tensor_bytes", "Bytes of tensors, arenas and weights in use, as measured", used.Total.Current - used.Files},
		{"tenure_measured_peak_bytes", "The most bytes of tensors, arenas and weights that were in use at a time", used.Total.Peak},
	} {
		e.family(g.name, "gauge", g.help)
		e.sample(g.name, "", g.value)
	}
	e.family("tenure_admission_rejected_total", "counter", "Requests that were refused for want of memory, room in a queue, or time")
	s.rejected.mu.Lock()
	defer s.rejected.mu.Unlock()
	for _, why := range []string{"busy", "draining", "never_fits", "timeout"} {
		e.sample("tenure_admission_rejected_total", `{reason="`+why+`"}`, s.rejected.by[why])
	}
}
