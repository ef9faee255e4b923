package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// loading is how a version was loaded, and is loaded again after its eviction.
type loading struct {
	version int
	file    string
	config  ModelConfig // as it was told
	further int64       // bytes beside the weights that its load takes, as far as that is known
	stats   *statistics // of the version, which go on; nil for a new one
}

// waking is a load of an evicted model that requests wait for.
type waking struct {
	entry *entry
	done  chan struct{}
	err   error // set when done is closed
}

// version returns a version of a model, or the highest one for "": one of those
// that are loaded, or of those that are evicted. It is nil for one that is not
// there. The server's lock is held.
func (e *entry) version(version string) *model {
	list := e.versions
	if len(list) == 0 {
		list = e.evicted
	}
	if version == "" && len(list) > 0 {
		return list[slices.Max(slices.Collect(maps.Keys(list)))]
	}
	v, err := strconv.Atoi(version)
	if err != nil {
		return nil
	}
	return list[v]
}

// useToRun returns a version of a model as use does, and loads it first where
// it was evicted. For that it waits as long as for memory.
func (s *Server) useToRun(ctx context.Context, name, version string) (*model, error) {
	start := time.Now()
	m, w, err := s.useOrWake(name, version)
	if w == nil {
		return m, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Patience, fmt.Errorf("the model is being loaded, and was not for %v: %w", s.config.Patience, ErrBusy))
	defer cancel()
	for w != nil {
		evicted := m
		if err := w.wait(ctx); err != nil {
			s.mu.Lock()
			w.entry.waiters--
			s.mu.Unlock()
			s.pokeEvictor()
			evicted.stats.answered(0, time.Since(start), times{}, err)
			return nil, err
		}
		// Until here it counts as one that waits, so the model was not evicted.
		s.mu.Lock()
		w.entry.waiters--
		m, w, err = s.runOrWake(name, version)
		s.mu.Unlock()
	}
	return m, err
}

// useOrWake returns a version of a model that is loaded, with a use, or an
// evicted one and what loads it, where the caller counts as one that waits.
func (s *Server) useOrWake(name, version string) (*model, *waking, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runOrWake(name, version)
}

// runOrWake is useOrWake with the server's lock, which is held.
func (s *Server) runOrWake(name, version string) (*model, *waking, error) {
	m, err := s.find(name, version)
	if err != nil {
		return nil, nil, err
	}
	e := s.models[name]
	if len(e.versions) > 0 {
		m.users++
		s.touch(m)
		return m, nil, nil
	}
	if e.waiters >= s.config.MaxQueue {
		return nil, nil, fmt.Errorf("got %d requests that wait, want fewer than %d: exceeds maximum queue size: %w", e.waiters, s.config.MaxQueue, ErrBusy)
	}
	if e.waking == nil {
		e.waking = &waking{entry: e, done: make(chan struct{})}
		go s.wake(e.waking)
	}
	e.waiters++
	return m, e.waking, nil
}

// wait waits for the load.
func (w *waking) wait(ctx context.Context) error {
	if n := connectionOf(ctx); n != nil {
		if err := n.enter(); err != nil {
			return err
		}
		defer n.waiting.Add(-1)
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// touch notes that a model is used now. The server's lock is held.
func (s *Server) touch(m *model) {
	s.uses++
	m.used = s.uses
}

// wake loads an evicted model as it was loaded before. It goes on when the
// requests that wait for it give up: the next ones find it loaded.
func (s *Server) wake(w *waking) {
	w.err = s.reload(w.entry)
	s.mu.Lock()
	w.entry.waking = nil
	s.mu.Unlock()
	close(w.done)
	s.pokeEvictor()
}

func (s *Server) reload(e *entry) error {
	if err := e.begin(s.base, s, "LOADING"); err != nil {
		return err
	}
	defer func() {
		<-e.busy
		s.ending.Done()
	}()
	s.mu.Lock()
	evicted := maps.Clone(e.evicted) // none: it was loaded or unloaded meanwhile
	s.mu.Unlock()
	var list []loading
	for _, v := range slices.Sorted(maps.Keys(evicted)) {
		list = append(list, evicted[v].loading)
	}
	if len(list) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		e.state = ""
		return nil
	}
	fresh, err := s.loadAll(s.base, e.name, list)
	s.mu.Lock()
	if err == nil && s.closed {
		err = ErrClosed
	}
	var old []*model
	e.state, e.broken = "", ""
	if err == nil {
		e.versions, e.evicted = fresh, nil
		for _, m := range fresh {
			s.touch(m)
			m.stats.reloads.Add(1)
		}
	} else {
		old = retire(fresh)
		if !errors.Is(err, ErrBusy) && !errors.Is(err, ErrClosed) {
			e.broken = err.Error() // it is not ready until a load succeeds
		}
	}
	s.change()
	s.mu.Unlock()
	if err != nil {
		s.config.Log.Error("loading an evicted model", "model", e.name, "error", err)
		return errors.Join(fmt.Errorf("load failed for model '%s': %w", e.name, err), end(old))
	}
	s.config.Log.Info("loaded again", "model", e.name, "versions", slices.Sorted(maps.Keys(fresh)))
	return nil
}

// pokeEvictor lets the evictor look whether memory is short.
func (s *Server) pokeEvictor() {
	select {
	case s.short <- struct{}{}:
	default:
	}
}

// evictor evicts models while claims wait that lack memory otherwise. It ends
// with the server.
func (s *Server) evictor() {
	for {
		select {
		case <-s.short:
		case <-s.noRoom:
			return
		}
		for s.memory.lacking() {
			if !s.evictOne() {
				s.memory.refuseLoad()
				break
			}
		}
	}
}

// evictOne evicts the model that was used longest ago, of those that nobody
// uses. It returns false if there is none.
func (s *Server) evictOne() bool {
	s.mu.Lock()
	var victim *entry
	var oldest uint64
	for _, e := range s.models {
		if used, ok := e.idle(); ok && (victim == nil || used < oldest) {
			victim, oldest = e, used
		}
	}
	if victim == nil || s.closed {
		s.mu.Unlock()
		return false
	}
	select {
	case victim.busy <- struct{}{}:
	default:
		s.mu.Unlock()
		return true // a load of it begins now: it is not idle any more
	}
	s.ending.Add(1)
	defer func() {
		<-victim.busy
		s.ending.Done()
	}()
	old := retire(victim.versions)
	versions := slices.Sorted(maps.Keys(victim.versions))
	victim.evicted, victim.versions = victim.versions, map[int]*model{}
	for _, m := range old {
		m.retired = false // those who look at it later do not end it again
		m.evicted.Store(true)
		m.stats.evictions.Add(1)
	}
	s.mu.Unlock()
	if err := end(old); err != nil {
		s.config.Log.Error("evicting a model", "model", victim.name, "error", err)
	}
	s.config.Log.Info("evicted", "model", victim.name, "versions", versions)
	return true
}

// idle reports whether a model can be evicted, and when it was last used. The
// server's lock is held.
func (e *entry) idle() (used uint64, ok bool) {
	if len(e.versions) == 0 || e.waiters > 0 || len(e.busy) > 0 {
		return 0, false
	}
	for _, m := range e.versions {
		if m.users > 0 || m.pinned {
			return 0, false
		}
		used = max(used, m.used)
	}
	return used, true
}

// evictionMetrics appends which models are evicted, and how often they were.
func evictionMetrics(e *exposition, list []*model) {
	for _, f := range []struct {
		name, kind, help string
		value            func(m *model) int64
	}{
		{"tenure_model_loaded", "gauge", "1 for a model in memory, 0 for one that was evicted", func(m *model) int64 {
			if m.evicted.Load() {
				return 0
			}
			return 1
		}},
		{"tenure_model_evictions_total", "counter", "How often a model was evicted", func(m *model) int64 { return m.stats.evictions.Load() }},
		{"tenure_model_reloads_total", "counter", "How often a model was loaded again after it was evicted", func(m *model) int64 { return m.stats.reloads.Load() }},
	} {
		e.family(f.name, f.kind, f.help)
		for _, m := range list {
			e.sample(f.name, m.labels(""), f.value(m))
		}
	}
}
