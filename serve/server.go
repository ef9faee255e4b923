package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves models. It is an http.Handler, for programs that have an HTTP
// server; [Server.Serve] is one.
type Server struct {
	config  Config
	handler http.Handler
	ingress *ledger // text, and what must be read before a plan is known
	memory  *ledger // weights, arenas, and tensors of requests
	regions regions

	draining atomic.Bool // it is not ready, and still answers
	rejected rejections
	switches switches
	log      *slog.Logger // without the switches

	base     context.Context // of the runs of all requests
	cancel   context.CancelCauseFunc
	refusing context.Context // it takes no further requests
	noMore   context.CancelFunc

	loads  chan struct{} // one load at a time, where models are evicted
	short  chan struct{} // of size 1: memory may be short, or a model idle
	noRoom chan struct{} // closed at the end: nothing is evicted any more

	mu      sync.Mutex
	models  map[string]*entry
	uses    uint64 // of models, which orders them
	closed  bool
	changed chan struct{}  // closed, and made anew, when it may have become ready, or not ready
	ending  sync.WaitGroup // loads and unloads under way
}

// New makes a server and loads its models. If some cannot be loaded, the error
// says which, and there is no server.
func New(ctx context.Context, c Config) (*Server, error) {
	c, err := c.check()
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	s := &Server{config: c, log: c.Log, models: map[string]*entry{}, changed: make(chan struct{}), ingress: newLedger(c.Memory / 8), memory: newLedger(c.Memory - c.Memory/8)}
	s.config.Log = slog.New(switchedLog{c.Log.Handler(), &s.switches})
	s.base, s.cancel = context.WithCancelCause(context.Background())
	s.refusing, s.noMore = context.WithCancel(context.Background())
	s.handler = s.routes()
	s.loads, s.short, s.noRoom = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	all, err := find(c.Paths)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if c.Evict {
		s.memory.short = s.pokeEvictor
		go s.evictor()
	}
	if !c.Empty {
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := s.Load(ctx, name, nil); err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) > 0 {
			return nil, errors.Join(append(errs, s.Close())...)
		}
	}
	return s, nil
}

// ListenAndServe serves models at an address until ctx ends, and then ends
// itself in order: see [Server.Serve].
func ListenAndServe(ctx context.Context, address string, c Config) error {
	s, err := New(ctx, c)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(s.Serve(ctx, l), s.Close())
}

// Serve answers requests until ctx ends, at each of the listeners over HTTP and
// gRPC. Then the server says that it is not ready, and goes on for
// Config.Drain; it refuses further requests, and returns when those under way
// are answered, or after Config.Exit, when it stops the runs of those that are
// not. The models stay loaded until [Server.Close]. If one listener fails, it
// returns at once.
func (s *Server) Serve(ctx context.Context, l ...net.Listener) error {
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	both.SetUnencryptedHTTP2(true)
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.config.Stall,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return s.base },
		Protocols:         &both,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          1000,
			MaxReceiveBufferPerConnection: 4<<20 - 1, // the largest
			MaxReceiveBufferPerStream:     window,
			SendPingTimeout:               time.Minute,
		},
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, &connection{})
		},
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { ended <- s.end(h) })
	failed := make(chan error, len(l))
	for _, l := range l {
		go func() { failed <- h.Serve(l) }()
	}
	for range l {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			if stop() {
				return errors.Join(err, h.Close())
			}
			return errors.Join(err, <-ended)
		}
	}
	return <-ended
}

// end ends what Serve began.
func (s *Server) end(h *http.Server) error {
	s.drain()
	time.Sleep(s.config.Drain)
	s.noMore()
	wait, cancel := context.WithTimeout(context.Background(), s.config.Exit)
	defer cancel()
	err := h.Shutdown(wait)
	if err != nil {
		s.cancel(ErrClosed)
		wait, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err = h.Shutdown(wait); err != nil {
			err = errors.Join(fmt.Errorf("serve: requests were under way for %v, and were ended: %w", s.config.Exit, err), h.Close())
		}
	}
	return err
}

// drain makes the server say that it is not ready.
func (s *Server) drain() {
	s.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change()
}

// change tells those that watch whether the server is ready. The lock is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// watch reports whether the server is ready, and returns a channel that is
// closed when that may have changed.
func (s *Server) watch() (ready bool, changed <-chan struct{}) {
	s.mu.Lock()
	changed = s.changed
	s.mu.Unlock()
	return s.isReady(), changed
}

// Close refuses requests, waits for those under way, and unloads all models. A
// second call returns nil.
func (s *Server) Close() error {
	s.drain()
	s.noMore()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var old []*model
	for _, e := range s.models {
		old = append(old, retire(e.versions)...)
		e.versions, e.evicted = map[int]*model{}, nil
	}
	s.mu.Unlock()
	err := errors.Join(end(old), s.regions.remove(""))
	s.ending.Wait()
	close(s.noRoom)
	s.cancel(ErrClosed)
	return err
}

// isReady reports whether every model is loaded that is to be, or was evicted
// and can be loaded again, and the server does not end.
func (s *Server) isReady() bool {
	if s.draining.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.models {
		if e.wanted && len(e.versions) == 0 && (len(e.evicted) == 0 || e.broken != "") {
			return false
		}
	}
	return !s.closed
}

// Memory is the sums of what a server has promised, in bytes.
type Memory struct {
	Budget   int64 // for everything together
	Promised int64 // weights, arenas, and what waits and runs
	Most     int64 // the largest Promised; an upper bound where requests had bodies of JSON
	Waiting  int   // requests that wait for memory
}

// Memory returns what is promised now.
func (s *Server) Memory() Memory {
	a, b := s.ingress.figures(), s.memory.figures()
	return Memory{Budget: a.budget + b.budget, Promised: a.used + b.used, Most: a.most + b.most, Waiting: a.waiting + b.waiting}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isCall(r) {
		s.serveCall(w, r)
		return
	}
	// The answer before on the connection had a time of its own.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	s.handler.ServeHTTP(w, r)
}
