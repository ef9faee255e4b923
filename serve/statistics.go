package serve

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// statistics are the counts of a version since it was loaded. They outlive its
// eviction.
type statistics struct {
	mu         sync.Mutex
	last       time.Time
	inferences int64 // rows
	executions int64 // runs
	success    tally
	failures   map[string]*tally // by reason
	queue      tally
	input      tally
	infer      tally
	output     tally
	batches    map[int]*batchTally // by rows

	evictions, reloads atomic.Int64
}

// tally is how often something was done, and how long it took together.
type tally struct {
	count int64
	took  time.Duration
}

func (t *tally) add(d time.Duration) {
	t.count++
	t.took += d
}

// MarshalJSON writes the form of the protocol.
func (t tally) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt([]byte(`{"count":`), t.count, 10)
	b = strconv.AppendInt(append(b, `,"ns":`...), int64(t.took), 10)
	return append(b, '}'), nil
}

type batchTally struct {
	Size   int   `json:"batch_size"`
	Input  tally `json:"compute_input"`
	Infer  tally `json:"compute_infer"`
	Output tally `json:"compute_output"`
}

// ran counts a run of so many rows.
func (s *statistics) ran(rows int, t times) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executions++
	if s.batches == nil {
		s.batches = map[int]*batchTally{}
	}
	b := s.batches[rows]
	if b == nil {
		if len(s.batches) >= mostPlans { // no model has so many by itself
			clear(s.batches)
		}
		b = &batchTally{Size: rows}
		s.batches[rows] = b
	}
	b.Input.add(t.input)
	b.Infer.add(t.infer)
	b.Output.add(t.output)
}

// answered counts a request.
func (s *statistics) answered(rows int, whole time.Duration, t times, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if err != nil {
		if s.failures == nil {
			s.failures = map[string]*tally{}
		}
		why := reason(err)
		if s.failures[why] == nil {
			s.failures[why] = &tally{}
		}
		s.failures[why].add(whole)
		return
	}
	s.inferences += int64(max(1, rows))
	s.success.add(whole)
	s.queue.add(t.queue)
	s.input.add(t.input)
	s.infer.add(t.infer)
	s.output.add(t.output)
}

// failed sums the failures. The lock is held.
func (s *statistics) failed() (sum tally) {
	for _, t := range s.failures {
		sum.count += t.count
		sum.took += t.took
	}
	return sum
}

// modelStatistics is the statistics of a version in the form of the protocol.
type modelStatistics struct {
	Name       string           `json:"name"`
	Version    string           `json:"version"`
	Last       int64            `json:"last_inference"`
	Inferences int64            `json:"inference_count"`
	Executions int64            `json:"execution_count"`
	Stats      map[string]tally `json:"inference_stats"`
	Batches    []batchTally     `json:"batch_stats"`
	Memory     []memoryUsage    `json:"memory_usage"`
	Generation *tokenTally      `json:"generation_stats,omitempty"`
	Eviction   *evictionTally   `json:"eviction_stats,omitempty"`
}

// evictionTally is what statistics say of a model that the server may evict.
type evictionTally struct {
	Evicted   bool  `json:"evicted"` // now
	Evictions int64 `json:"evictions"`
	Reloads   int64 `json:"reloads"`
}

type memoryUsage struct {
	Type  string `json:"type"`
	ID    int    `json:"id"`
	Bytes int64  `json:"byte_size"`
}

// statisticsOf returns the statistics of a model's versions, or of all models
// for "".
func (s *Server) statisticsOf(name, version string) (any, error) {
	list, err := s.loaded(name, version)
	if err != nil {
		return nil, err
	}
	all := make([]modelStatistics, 0, len(list))
	for _, m := range list {
		all = append(all, m.statistics())
		m.done()
	}
	return map[string]any{"model_stats": all}, nil
}

func (m *model) statistics() modelStatistics {
	s := m.stats
	s.mu.Lock()
	e := modelStatistics{Name: m.name, Version: strconv.Itoa(m.version), Inferences: s.inferences, Executions: s.executions,
		Stats: map[string]tally{"success": s.success, "fail": s.failed(), "queue": s.queue, "compute_input": s.input, "compute_infer": s.infer, "compute_output": s.output, "cache_hit": {}, "cache_miss": {}}}
	if !s.last.IsZero() {
		e.Last = s.last.UnixMilli()
	}
	e.Batches = []batchTally{}
	for _, b := range slices.SortedFunc(maps.Values(s.batches), func(a, b *batchTally) int { return cmp.Compare(a.Size, b.Size) }) {
		e.Batches = append(e.Batches, *b)
	}
	s.mu.Unlock()
	weights, standing := m.server.memory.of(m.account)
	e.Memory = []memoryUsage{{"CPU weights", 0, weights}, {"CPU arenas", 0, standing}}
	e.Generation = m.gen.tally()
	if m.server.config.Evict {
		e.Eviction = &evictionTally{m.evicted.Load(), s.evictions.Load(), s.reloads.Load()}
	}
	return e
}
