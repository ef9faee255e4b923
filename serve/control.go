package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// entry is a model of a name, with its loaded versions.
type entry struct {
	name string
	busy chan struct{} // one load or unload at a time

	// These belong to the server's lock.
	versions map[int]*model
	evicted  map[int]*model // closed ones, which are loaded again when a request comes; versions is empty then
	waking   *waking        // under way
	waiters  int            // requests that wait for it
	state    string         // while it is loaded or unloaded, "" otherwise
	reason   string         // why the last load failed
	broken   string         // why an evicted one could not be loaded again
	wanted   bool           // it was loaded, or is to be: the server is not ready without it
}

// entryOf returns the entry of a name, and makes one for a model of the paths.
func (s *Server) entryOf(name string) (*entry, error) {
	all, err := find(s.config.Paths)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.models[name]
	if e == nil && all[name] == nil {
		return nil, errNoFiles
	}
	if e == nil {
		e = &entry{name: name, busy: make(chan struct{}, 1), versions: map[int]*model{}}
		s.models[name] = e
	}
	return e, nil
}

// errNoFiles is the error for a model whose files are not there.
var errNoFiles = fmt.Errorf("got no model of the name in the server's paths: %w", ErrNotFound)

// use returns a version of a model, which stays until done: the highest one
// that is loaded, if version is "". One that was evicted describes itself, and
// cannot run: see useToRun.
func (s *Server) use(name, version string) (*model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.find(name, version)
	if err == nil {
		m.users++
	}
	return m, err
}

// find returns a version of a model, loaded or evicted. The lock is held.
func (s *Server) find(name, version string) (*model, error) {
	if s.closed {
		return nil, ErrClosed
	}
	e := s.models[name]
	if e == nil || len(e.versions)+len(e.evicted) == 0 {
		return nil, unknownModel{name, ""}
	}
	m := e.version(version)
	if m == nil {
		return nil, unknownModel{name, version}
	}
	return m, nil
}

// done ends what use began.
func (m *model) done() {
	s := m.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.users--; m.users == 0 {
		if s.memory.lacks.Load() {
			s.pokeEvictor()
		}
		if m.retired {
			close(m.idle)
		}
	}
}

// retire takes versions out of use; wait for them without the lock, which is
// held here.
func retire(versions map[int]*model) (list []*model) {
	for _, m := range versions {
		m.retired = true
		if m.users == 0 {
			close(m.idle)
		}
		list = append(list, m)
	}
	return list
}

// end closes versions as soon as nobody uses them.
func end(list []*model) (err error) {
	for _, m := range list {
		<-m.idle
		err = errors.Join(err, m.close())
	}
	return err
}

// Load loads a model from the server's paths, or loads it again: its files and
// its configuration are read anew. Requests are answered by the versions that
// were loaded before until the new ones are ready, and by these from then on;
// an error leaves the old ones in use. config replaces the configuration of the
// model's folder; nil does not.
func (s *Server) Load(ctx context.Context, name string, config *ModelConfig) error {
	e, err := s.entryOf(name)
	if err != nil {
		return fmt.Errorf("load failed for model '%s': %w", name, err)
	}
	if err := e.begin(ctx, s, "LOADING"); err != nil {
		return err
	}
	fresh, err := s.load(ctx, name, config)
	s.mu.Lock()
	if err == nil && s.closed {
		err = ErrClosed
	}
	var old []*model
	e.state, e.reason = "", ""
	if err == nil {
		old, e.versions, e.evicted, e.broken, e.wanted = retire(e.versions), fresh, nil, "", true
		for _, m := range fresh {
			s.touch(m)
		}
	} else {
		e.reason = err.Error()
		old = retire(fresh)
	}
	s.change()
	s.mu.Unlock()
	// One that was loaded while requests came is there until they are answered.
	// The next load waits for that, so at most two generations are in memory.
	rest := func() {
		if err := end(old); err != nil {
			s.config.Log.Error("closing an old version", "model", name, "error", err)
		}
		<-e.busy
		s.pokeEvictor()
		s.ending.Done()
	}
	if len(old) > 0 {
		go rest()
	} else {
		rest()
	}
	if err != nil {
		return fmt.Errorf("load failed for model '%s': %w", name, err)
	}
	s.config.Log.Info("loaded", "model", name, "versions", slices.Sorted(maps.Keys(fresh)))
	return nil
}

// begin waits until no other load or unload of the model is under way.
func (e *entry) begin(ctx context.Context, s *Server, state string) error {
	select {
	case e.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		<-e.busy
		return ErrClosed
	}
	s.ending.Add(1)
	e.state = state
	return nil
}

// load loads the versions of a model that its policy names.
func (s *Server) load(ctx context.Context, name string, config *ModelConfig) (map[int]*model, error) {
	all, err := find(s.config.Paths)
	if err != nil {
		return nil, err
	}
	src := all[name]
	if src == nil {
		return nil, errNoFiles
	}
	own, err := src.read() // it may name the files
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = own
	}
	versions, err := src.chosen(config.VersionPolicy)
	if err != nil {
		return nil, err
	}
	var list []loading
	for _, v := range versions {
		list = append(list, loading{version: v, file: src.versions[v], config: *config})
	}
	return s.loadAll(ctx, name, list)
}

// loadAll loads versions of a model. Where models are evicted for that, one is
// loaded at a time: each of two could hold what the other one waits for.
func (s *Server) loadAll(ctx context.Context, name string, list []loading) (fresh map[int]*model, err error) {
	if s.config.Evict {
		select {
		case s.loads <- struct{}{}:
			defer func() { <-s.loads }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	fresh = map[int]*model{}
	for _, l := range list {
		v := l.version
		if fresh[v], err = s.loadModel(ctx, name, l); err != nil {
			delete(fresh, v)
			s.mu.Lock()
			old := retire(fresh)
			s.mu.Unlock()
			return nil, errors.Join(fmt.Errorf("version %d: %w", v, err), end(old))
		}
	}
	return fresh, nil
}

// Unload takes a model out of service. It returns when the requests that came
// before have been answered, or with the error of ctx: the model is out of
// service then, too.
func (s *Server) Unload(ctx context.Context, name string) error {
	s.mu.Lock()
	e := s.models[name]
	s.mu.Unlock()
	if e == nil {
		return unknownModel{name, ""}
	}
	if err := e.begin(ctx, s, "UNLOADING"); err != nil {
		return err
	}
	s.mu.Lock()
	old := retire(e.versions)
	e.versions, e.evicted, e.broken, e.wanted, e.reason = map[int]*model{}, nil, "", false, "unloaded"
	s.change()
	s.mu.Unlock()
	ended := make(chan error, 1)
	go func() {
		err := end(old)
		s.mu.Lock()
		e.state = ""
		s.mu.Unlock()
		<-e.busy
		s.ending.Done()
		ended <- err
	}()
	s.config.Log.Info("unloaded", "model", name)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Models lists the models of the server and of its paths.
func (s *Server) Models() ([]ModelState, error) {
	all, err := find(s.config.Paths)
	if err != nil {
		return nil, err
	}
	var list []ModelState
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.models {
		delete(all, name)
		for v := range e.versions {
			list = append(list, ModelState{Name: name, Version: strconv.Itoa(v), State: "READY"})
		}
		for v := range e.evicted {
			m := ModelState{Name: name, Version: strconv.Itoa(v), State: "READY", Reason: "evicted"}
			if e.broken != "" {
				m.State, m.Reason = "UNAVAILABLE", e.broken
			}
			list = append(list, m)
		}
		if len(e.versions)+len(e.evicted) == 0 {
			list = append(list, ModelState{Name: name, State: or(e.state, "UNAVAILABLE"), Reason: e.reason})
		}
	}
	for name := range all {
		list = append(list, ModelState{Name: name})
	}
	slices.SortFunc(list, func(a, b ModelState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(len(a.Version), len(b.Version)), cmp.Compare(a.Version, b.Version))
	})
	return list, nil
}

// loaded lists the versions that are in use, or evicted, each with a use that
// the caller ends: those of one model, or of all for "".
func (s *Server) loaded(name, version string) ([]*model, error) {
	if version != "" {
		m, err := s.use(name, version)
		return []*model{m}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*model
	for n, e := range s.models {
		if name != "" && n != name {
			continue
		}
		for _, versions := range []map[int]*model{e.versions, e.evicted} {
			for _, m := range versions {
				m.users++
				list = append(list, m)
			}
		}
	}
	if name != "" && list == nil {
		return nil, unknownModel{name, ""}
	}
	slices.SortFunc(list, func(a, b *model) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	return list, nil
}
